// What a head's pattern says about it: scores, each with what chance would give.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "headwise/study/head.hpp"
#include "headwise/study/sequences.hpp"
#include "headwise/study/shuffle_bound.hpp"

namespace headwise::study {

/// The scores of a head. A is a sequence's pattern (T,T), i a query, j a key, both from 0; "mean"
/// is over the queries of all sequences, chance what weights dealt at random over the keys 0..i
/// give.
///   previous_token   mean over i >= 1 of A[i,i-1] (Olsson et al. 2022, arXiv:2209.11895, appendix)
///   current_token    mean of A[i,i]
///   first_token      mean of A[i,0]: an attention sink (Xiao et al. 2023, arXiv:2309.17453)
///   fixed_offset     the largest over k = 0 .. T/2 of the mean over i >= k of A[i,i-k]
///   duplicate_token  mean, over the i whose token has occurred before, of the weight on all its
///                    earlier occurrences
///   prefix_matching  mean, over the same i, of the weight on the tokens that follow the earlier
///                    occurrences: induction. (Olsson's average over all such entries of A divides
///                    by their number; summed over a query's, 1 means "always", however many.)
///   copying          of what the head raises among a sequence's tokens, the share of the token
///   that
///                    it attends to most: see copying.hpp
///   entropy          mean of -sum_j A log A, nats; chance: even weights
///   confidence       mean of max_j A (Voita et al. 2019, arXiv:1905.09418, sec. 4); likewise
///   mean_distance    mean of sum_j A (i-j), tokens; likewise
///   locality         mean of the weight on the last kWindow tokens, this one included
///   subject, antecedent, sense   see relations.hpp
enum class Score {
  previous_token,
  current_token,
  first_token,
  fixed_offset,
  duplicate_token,
  prefix_matching,
  copying,
  entropy,
  confidence,
  mean_distance,
  locality,
  subject,
  antecedent,
  sense
};
constexpr std::array<std::string_view, 14> names_of(Score) {
  return {"previous_token",  "current_token", "first_token", "fixed_offset", "duplicate_token",
          "prefix_matching", "copying",       "entropy",     "confidence",   "mean_distance",
          "locality",        "subject",       "antecedent",  "sense"};
}

inline constexpr Index kWindow = 5;

/// A score of one head.
struct Measure {
  double value = 0;
  double chance = 0;
  /// Bound of the permutation test's p-value (ShuffleBound), for the best offset multiplied by the
  /// number of offsets; of entropy, confidence and mean distance, which no dealing changes in
  /// that sense, see compare_with_untrained(). Absent: not computed.
  std::optional<double> p{};
  Index offset = 0;  ///< of fixed_offset: k
  /// Of a relation: what the best fixed offset in words gives, and which that is; the most that is
  /// reached by any other way of knowing nothing but places; and the bound of p when one is right
  /// by the most of all these instead of by chance.
  double baseline = 0;
  Index baseline_offset = 0;
  double baseline_place = 0;
  std::optional<double> p_baseline{};
};

/// Scores that could be measured: no duplicates, no duplicate_token.
using Scores = std::map<Score, Measure>;

/// Scores of every head, in the order of heads_of(): those of patterns alone, previous_token to
/// prefix_matching and entropy to locality. With `bounds` they have p-values, at about twice the
/// cost.
template <Real T>
std::vector<Scores> pattern_scores(const Decoder<T>& model, const Sequences& sequences,
                                   bool bounds = true);

/// The same of one pattern alone: `pattern` (T,T) row by row, ids (T).
template <Real T>
Scores pattern_scores(std::span<const T> pattern, std::span<const Id> ids);

/// Gives entropy, confidence and mean_distance of `heads` their p-values: how unusual each is among
/// `untrained` heads on the same sequences as `same`, (1 + those at least as far out) / (1 + all),
/// doubled: both sides count.
void compare_with_untrained(std::vector<Scores>& heads, const std::vector<Scores>& same,
                            const std::vector<Scores>& untrained);

}  // namespace headwise::study
