#include "headwise/study/roles.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace headwise::study {
namespace {

constexpr Score kRoles[] = {Score::previous_token, Score::current_token,   Score::first_token,
                            Score::fixed_offset,   Score::duplicate_token, Score::prefix_matching,
                            Score::copying,        Score::subject,         Score::antecedent,
                            Score::sense};

bool is_relation(Score score) {
  return score == Score::subject || score == Score::antecedent || score == Score::sense;
}

bool on_repeated(Score score) {
  return score == Score::duplicate_token || score == Score::prefix_matching ||
         score == Score::copying;
}

/// A head and a role that it was tested for.
struct Trial {
  HeadStudy* head;
  Score role;
  const Measure* measure;
};

std::vector<Trial> trials_of(std::vector<HeadStudy>& heads) {
  std::vector<Trial> trials;
  for (HeadStudy& head : heads)
    for (const Score role : kRoles)
      if (const Measure* m = head.score(role); m != nullptr && m->p)
        trials.push_back({&head, role, m});
  return trials;
}

}  // namespace

On best_on(Score score) {
  return is_relation(score) ? On::stories : on_repeated(score) ? On::repeated : On::data;
}

On HeadStudy::where(Score score) const {
  const On best = best_on(score);
  return best == On::repeated && !on.contains(best) ? On::data : best;
}

const Measure* HeadStudy::score(Score score) const { return this->score(score, where(score)); }

const Measure* HeadStudy::score(Score score, On where) const {
  const auto set = on.find(where);
  if (set == on.end()) return nullptr;
  const auto at = set->second.find(score);
  return at == set->second.end() ? nullptr : &at->second;
}

double explained(const HeadStudy& head, Score role) {
  const Measure* const m = head.score(role);
  if (m == nullptr) return 0;
  if (is_relation(role)) return std::max({m->chance, m->baseline, m->baseline_place});
  const bool token_based = role == Score::duplicate_token || role == Score::prefix_matching;
  const Measure* const offset =
      token_based ? head.score(Score::fixed_offset, head.where(role)) : nullptr;
  return std::max(m->chance, offset == nullptr ? 0 : offset->value);
}

void name_roles(std::vector<HeadStudy>& heads, const RoleRule& rule) {
  for (HeadStudy& head : heads) head.role.reset(), head.label.clear(), head.corrected_p = 1;
  const std::vector<Trial> trials = trials_of(heads);
  std::vector<double> p;
  for (const Trial& t : trials) p.push_back(t.measure->p_baseline.value_or(*t.measure->p));
  const std::vector<double> corrected = holm(p);
  std::map<HeadStudy*, double> best;  // of each head, how near its role is to its best value
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const auto& [head, role, m] = trials[i];
    const double without = explained(*head, role);
    if (corrected[i] >= rule.alpha || m->value < without + rule.margin) continue;
    if (role == Score::fixed_offset && m->offset < 2) continue;
    const double telling = role == Score::copying ? 0 : (m->value - without) / (1 - without);
    if (const auto so_far = best.find(head); so_far != best.end() && so_far->second >= telling)
      continue;
    best[head] = telling;
    head->role = role;
    head->label = label_of(role, m->offset);
    head->corrected_p = corrected[i];
  }
}

std::string label_of(Score role, Index offset) {
  switch (role) {
    case Score::fixed_offset:
      return fmt::format("offset -{}", offset);
    case Score::prefix_matching:
      return "induction";
    case Score::subject:
      return "subject of verb";
    case Score::antecedent:
      return "antecedent of pronoun";
    case Score::sense:
      return "sense of bank";
    default: {
      std::string label(name_of(role));
      std::replace(label.begin(), label.end(), '_', ' ');
      return label;
    }
  }
}

std::vector<RoleGroup> role_groups(const std::vector<HeadStudy>& heads) {
  std::vector<RoleGroup> groups;
  for (const HeadStudy& head : heads) {
    if (!head.role) continue;
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const RoleGroup& g) { return g.label == head.label; });
    if (group == groups.end()) group = groups.insert(groups.end(), {*head.role, head.label, {}});
    group->heads.push_back(head.id);
  }
  return groups;
}

}  // namespace headwise::study
