#include "headwise/study/shuffle_bound.hpp"

#include <cmath>
#include <limits>

#include "headwise/core/random.hpp"
#include "support/catch.hpp"

using namespace headwise;
using namespace headwise::study;

namespace {

/// Weights of some queries, each over the keys it sees, and how many of them count.
struct Queries {
  std::vector<std::vector<double>> weights;
  Index draws = 1;
};

/// Queries 2 .. n+1 keys wide, whose weights are uneven by a power.
Queries uneven(Index n, double power, Index draws, Rng& rng) {
  Queries all{.weights = {}, .draws = draws};
  for (Index i = 0; i < n; ++i) {
    std::vector<double> row(static_cast<std::size_t>(i + draws + 1));
    double sum = 0;
    for (double& w : row) sum += w = std::pow(rng.uniform(), power);
    for (double& w : row) w /= sum;
    all.weights.push_back(row);
  }
  return all;
}

/// The sum when each query's weights are dealt anew.
double dealt(const Queries& queries, Rng& rng) {
  double sum = 0;
  for (const auto& row : queries.weights) {
    const std::vector<Index> order = rng.permutation(std::ssize(row));
    for (Index d = 0; d < queries.draws; ++d)
      sum += row[static_cast<std::size_t>(order[static_cast<std::size_t>(d)])];
  }
  return sum;
}

}  // namespace

TEST_CASE("the bound is never below the permutation test's p", "[study]") {
  constexpr int kPermutations = 4000;
  Rng rng(7);
  for (const double power : {0.5, 2.0, 12.0})
    for (const Index draws : {1, 3}) {
      CAPTURE(power, draws);
      const Queries queries = uneven(24, power, draws, rng);
      ShuffleBound bound;
      for (const auto& row : queries.weights)
        bound.add(ShuffleBound::of(std::span<const double>(row)), static_cast<double>(draws));
      std::vector<double> sums;
      for (int n = 0; n < kPermutations; ++n) sums.push_back(dealt(queries, rng));
      std::sort(sums.begin(), sums.end());
      for (const double p : {0.5, 0.1, 0.01}) {
        const double sum = sums[static_cast<std::size_t>((1 - p) * kPermutations)];
        CHECK(bound.p(sum) >= p);
        // And not far from it: a bound of 1 would be no help.
        if (draws == 1 && p < 0.5) CHECK(bound.p(sum) < 12 * p);
      }
    }
}

TEST_CASE("a sum that needs every query to be right has the product of their chances", "[study]") {
  ShuffleBound bound;
  const std::vector<double> row{0, 1, 0, 0};
  for (int i = 0; i < 10; ++i) bound.add(ShuffleBound::of(std::span<const double>(row)));
  CHECK(bound.p(10) == Approx(std::pow(0.25, 10)).epsilon(1e-6));
  CHECK(bound.p(0) == 1);
  ShuffleBound right;
  for (int i = 0; i < 10; ++i) right.add(ShuffleBound::of_right(0.25));
  CHECK(right.p(10) == Approx(bound.p(10)).epsilon(1e-9));
}

TEST_CASE("Holm's correction multiplies the smallest p by all tests, the next by one less",
          "[study]") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> p{0.01, 0.04, none, 0.03, 0.005};
  const std::vector<double> corrected = holm(p);
  CHECK(corrected[4] == Approx(0.02));
  CHECK(corrected[0] == Approx(0.03));
  CHECK(corrected[3] == Approx(0.06));
  CHECK(corrected[1] == Approx(0.06));  // never below the one before
  CHECK(std::isnan(corrected[2]));
}
