// How likely chance alone would do as well: a bound on a permutation test's p-value.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "headwise/core/shape.hpp"

namespace headwise::study {

/// The permutation test behind every p-value of a pattern: each query's weights are dealt at random
/// over the keys it sees, queries independently, and the score is a sum over queries of the weights
/// that fall on the keys asked about. p = P(sum >= observed).
///
/// Drawing enough permutations for a p small enough to survive a correction for hundreds of tests
/// is out of reach, so p is bounded from above (Chernoff): for every t > 0
///   P(S >= s) <= exp(-t s) prod_queries E exp(t S_query),
/// and for m of a query's keys E exp(t S_query) <= (mean_j exp(t A_j))^m, since drawing without
/// replacement is less spread than with (Hoeffding 1963, JASA 58, theorem 4). The smallest bound
/// over eleven t, 1/16 to 64, is what p() gives: never below the true p.
class ShuffleBound {
 public:
  static constexpr std::size_t kSteps = 11;
  static constexpr double kFirst = 1.0 / 16;  ///< t doubles from step to step
  /// log mean_j exp(t A_j) of one query, for each t.
  using Cumulants = std::array<double, kSteps>;

  /// Of a query's weights over the keys it sees (1 or more).
  template <Real T>
  static Cumulants of(std::span<const T> weights);
  /// Of a query that is right or wrong, right with this probability by chance.
  static Cumulants of_right(double probability);

  /// A query of which `draws` keys count.
  void add(const Cumulants& query, double draws = 1);
  /// All queries of another one.
  void add(const ShuffleBound& other) { add(other.total_); }
  /// The bound for a sum of that size: 0 < p <= 1; what is below 1e-300 is 1e-300.
  [[nodiscard]] double p(double sum) const;

 private:
  Cumulants total_{};
};

/// p-values corrected for having looked at all of them (Holm 1979, Scand. J. Statist. 6, 65-70):
/// the chance that any of those below a threshold is there by chance is at most that threshold. In
/// the order given; a NaN counts as no test and stays NaN.
std::vector<double> holm(std::span<const double> p);

}  // namespace headwise::study
