// What a head is for, if anything: a name only where chance and position do not explain as much.
#pragma once

#include <string>

#include "headwise/study/scores.hpp"

namespace headwise::study {

/// What a score was measured on.
enum class On {
  data,      ///< held-out sequences, or a text that was given
  repeated,  ///< repeated random tokens
  stories    ///< questions about new stories
};
constexpr std::array<std::string_view, 3> names_of(On) { return {"data", "repeated", "stories"}; }

/// Where a score tells most, and is looked for when roles are named: duplicates, followers and
/// copying on repeated tokens, relations on stories, all else on data.
On best_on(Score score);

/// What is known of a head.
struct HeadStudy {
  HeadId id;
  std::map<On, Scores> on{};
  std::optional<Score> role{};
  std::string label{};     ///< the role as people say it: "induction", "offset -3"; "" without one
  double corrected_p = 1;  ///< of the role, after Holm's correction

  /// best_on(), or the data where there are no repeated tokens.
  [[nodiscard]] On where(Score score) const;
  /// A score where it tells most, or nothing.
  [[nodiscard]] const Measure* score(Score score) const;
  [[nodiscard]] const Measure* score(Score score, On on) const;
};

/// When a role is named.
struct RoleRule {
  double alpha = 0.05;  ///< most p, corrected by Holm over every head and role that has one
  double margin = 0.1;  ///< least distance from what explains the score without the role
};

/// What explains a score as well without the role: chance; for duplicates and followers also the
/// head's best fixed offset on the same sequences; for a relation the best rule that knows places
/// alone, and its p is then taken against that.
double explained(const HeadStudy& head, Score role);

/// Names each head's most telling role: of those that are significant and stand out by the
/// margin, the one nearest to its best possible value, (value - explained) / (1 - explained).
/// Copying says what a head writes, not where it looks, and is named only where nothing else is.
/// The best offset is a role from 2 on: 0 and 1 are current_token and previous_token.
void name_roles(std::vector<HeadStudy>& heads, const RoleRule& rule = {});

/// "previous token", "offset -3" for a fixed offset of 3, "induction", ...
std::string label_of(Score role, Index offset = 0);

/// Heads that share a role: all fixed offsets are one only where the offset is the same.
struct RoleGroup {
  Score role;
  std::string label;
  std::vector<HeadId> heads;
};
std::vector<RoleGroup> role_groups(const std::vector<HeadStudy>& heads);

}  // namespace headwise::study
