// Which tokens may be drawn from logits, and how often each comes.
#include "headwise/models/draw.hpp"

#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/numbers.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

template <Real T>
Id drawn(const std::vector<T>& logits, const Drawing& drawing, Rng& rng) {
  return Drawer(drawing).draw(std::span<const T>(logits), rng);
}

template <Real T>
std::vector<Id> draws(const std::vector<T>& logits, const Drawing& drawing, int n) {
  Drawer drawer(drawing);
  Rng rng(1);
  std::vector<Id> ids;
  for (int i = 0; i < n; ++i) ids.push_back(drawer.draw(std::span<const T>(logits), rng));
  return ids;
}

std::vector<double> logs(std::vector<double> probabilities) {
  for (double& p : probabilities) p = std::log(p);
  return probabilities;
}

/// Whether 20000 draws fit the expected distribution: none where it is 0, and Pearson's chi-square
/// below what one fitting sample in a million reaches (39 for up to 6 degrees of freedom).
template <Real T>
void check_frequencies(const std::vector<T>& logits, const Drawing& drawing,
                       const std::vector<double>& expected) {
  constexpr int kDraws = 20000;
  std::vector<double> counts(logits.size());
  for (const Id id : draws(logits, drawing, kDraws)) ++counts[static_cast<std::size_t>(id)];
  REQUIRE(counts.size() == expected.size());
  REQUIRE(std::accumulate(expected.begin(), expected.end(), 0.) == Approx(1).epsilon(1e-5));
  double chi_square = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    CAPTURE(i, counts[i]);
    const double mean = kDraws * expected[i];
    if (mean == 0)
      CHECK(counts[i] == 0);
    else
      chi_square += (counts[i] - mean) * (counts[i] - mean) / mean;
  }
  CHECK(chi_square < 39);
}

/// Logits of which several are equal.
std::vector<float> rough_logits(int n) {
  Rng rng(2);
  std::vector<float> logits;
  for (int i = 0; i < n; ++i)
    logits.push_back(static_cast<float>(std::round(rng.normal() * 32) / 16));
  return logits;
}

/// The filters in plain words: the tokens sorted, cut, and put back; then their probabilities.
std::vector<double> filtered(const std::vector<float>& logits, const Drawing& d) {
  std::vector<std::pair<double, std::size_t>> tokens;  // the likeliest and then the lowest first
  for (std::size_t i = 0; i < logits.size(); ++i) tokens.emplace_back(-logits[i], i);
  std::sort(tokens.begin(), tokens.end());
  if (d.top_k > 0 && d.top_k < std::ssize(tokens)) tokens.resize(static_cast<std::size_t>(d.top_k));
  std::vector<double> weights;
  for (const auto& [minus, i] : tokens)
    weights.push_back(std::exp((tokens[0].first - minus) / d.temperature));
  const double total = std::accumulate(weights.begin(), weights.end(), 0.);
  std::size_t kept = 0;
  for (double mass = 0; kept < weights.size() && (d.top_p == 1 || mass < d.top_p * total);)
    mass += weights[kept++];
  const double left = std::accumulate(weights.begin(), weights.begin() + std::ptrdiff_t(kept), 0.);
  std::vector<double> probabilities(logits.size());
  for (std::size_t i = 0; i < kept; ++i) probabilities[tokens[i].second] = weights[i] / left;
  return probabilities;
}

}  // namespace

TEMPLATE_TEST_CASE("temperature 0 takes the lowest of the largest", "[models][draw]", float,
                   double) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    for (const Drawing& d : {Drawing{.temperature = 0}, Drawing{0, 3, 0.9}}) {
      CHECK(drawn<TestType>({1, 3, 3, 0}, d, rng) == 1);
      CHECK(drawn<TestType>({-2, -1}, d, rng) == 1);
      CHECK(drawn<TestType>({5}, d, rng) == 0);
    }
    CHECK(rng.position() == 0);
  }
}

TEMPLATE_TEST_CASE("a tiny temperature is finite and takes one of the largest", "[models][draw]",
                   float, double) {
  for (const double temperature : {1e-8, 1e-300, 5e-324}) {
    const auto ids = draws<TestType>({1, 3, 3, 0}, {.temperature = temperature}, 100);
    CHECK(std::set<Id>(ids.begin(), ids.end()) == std::set<Id>{1, 2});
  }
}

TEST_CASE("a drawing that is none is refused by option and value", "[models][draw][errors]") {
  const auto refusal = [](const Drawing& d) {
    return test::message_of<UsageError>([&] { Drawer{d}; });
  };
  CHECK(refusal({.temperature = -1}) == "temperature: must be finite and >= 0, got -1");
  CHECK(refusal({.temperature = kNaN}) == "temperature: must be finite and >= 0, got nan");
  CHECK(refusal({.temperature = kInf}) == "temperature: must be finite and >= 0, got inf");
  CHECK(refusal({.temperature = -kInf}) == "temperature: must be finite and >= 0, got -inf");
  CHECK(refusal({.top_k = -1}) == "top-k: must be >= 0, got -1");
  CHECK(refusal({.top_p = 0}) == "top-p: must be in (0, 1], got 0");
  CHECK(refusal({.top_p = -0.5}) == "top-p: must be in (0, 1], got -0.5");
  CHECK(refusal({.top_p = 1.5}) == "top-p: must be in (0, 1], got 1.5");
  CHECK(refusal({.top_p = kNaN}) == "top-p: must be in (0, 1], got nan");
}

TEMPLATE_TEST_CASE("logits that are not finite are refused", "[models][draw][errors]", float,
                   double) {
  const auto nan = static_cast<TestType>(kNaN), inf = static_cast<TestType>(kInf);
  Rng rng(1);
  for (const Drawing& d : {Drawing{}, Drawing{.temperature = 0}, Drawing{1, 2, 0.5}})
    for (const std::vector<TestType>& bad :
         {std::vector<TestType>{1, nan, 2}, {nan}, {inf, 1}, {-inf, -inf}})
      CHECK_THROWS_WITH(drawn(bad, d, rng), "sample: the model's logits are not finite");
}

TEST_CASE("tokens come as often as softmax says", "[models][draw]") {
  const float inf = std::numeric_limits<float>::infinity();
  check_frequencies<float>({1000, 1000 + std::log(2.F), -inf, 1000 + std::log(3.F), -inf}, {},
                           {1. / 6, 2. / 6, 0, 3. / 6, 0});
  check_frequencies<float>({0, std::log(2.F), std::log(3.F)}, {.temperature = 0.5},
                           {1. / 14, 4. / 14, 9. / 14});
}

TEST_CASE("a filter that keeps every token changes no draw", "[models][draw]") {
  const auto logits = rough_logits(50);
  const auto all = draws(logits, {}, 200);
  for (const Index k : {0, 50, 51, 100000}) CHECK(draws(logits, {.top_k = k}, 200) == all);
  CHECK(draws(logits, {.top_p = 1}, 200) == all);
  CHECK(draws(logits, {.top_p = 1 - 1e-12}, 200) == all);
  CHECK(draws(logits, {.top_p = 0.9}, 200) != all);
  Drawer drawer({.top_k = 3, .top_p = 0.5});
  Rng rng(1);
  for (std::uint64_t i = 1; i <= 10; ++i) {
    drawer.draw(std::span<const float>(logits), rng);
    CHECK(rng.position() == i);
  }
}

TEST_CASE("top-k keeps exactly so many, the lowest of equals first", "[models][draw]") {
  check_frequencies<float>({1, 2, 2, 2, 0}, {.top_k = 2}, {0, 0.5, 0.5, 0, 0});
  check_frequencies<float>({2, 2, 2, 2, 2}, {.top_k = 3}, {1. / 3, 1. / 3, 1. / 3, 0, 0});
  check_frequencies<double>(logs({0.1, 0.2, 0.3, 0.4}), {.top_k = 3}, {0, 2. / 9, 3. / 9, 4. / 9});
  for (const Id id : draws<float>({1, 3, 3, 0}, {.top_k = 1}, 100)) CHECK(id == 1);
}

TEST_CASE("top-p keeps the token that crosses it", "[models][draw]") {
  const auto logits = logs({0.05, 0.5, 0.15, 0.3});
  check_frequencies(logits, {.top_p = 0.6}, {0, 0.625, 0, 0.375});
  check_frequencies(logits, {.top_p = 0.85}, {0, 0.526316, 0.157895, 0.315789});
  check_frequencies(logits, {.top_p = 0.96}, {0.05, 0.5, 0.15, 0.3});
  check_frequencies(logits, {.top_p = 1e-300}, {0, 1, 0, 0});
  check_frequencies<float>({7, 7, 7, 7}, {.top_p = 0.5}, {0.5, 0.5, 0, 0});  // just reached
  check_frequencies<float>({7, 7, 7, 7}, {.top_p = 0.51}, {1. / 3, 1. / 3, 1. / 3, 0});
}

TEST_CASE("top-p is of the distribution after temperature and top-k", "[models][draw]") {
  const auto logits = logs({0.4, 0.3, 0.2, 0.1});
  // Of the first three alone the first has 4/9 and two have 7/9.
  check_frequencies(logits, {.top_k = 3, .top_p = 0.75}, {4. / 7, 3. / 7, 0, 0});
  check_frequencies(logits, {.top_p = 0.75}, {4. / 9, 3. / 9, 2. / 9, 0});
  // At one half 16 : 9 : 4 : 1, of which two have 25/30.
  check_frequencies(logits, {.temperature = 0.5, .top_p = 0.8}, {16. / 25, 9. / 25, 0, 0});
}

TEST_CASE("the filters keep what sorting and cutting keeps, in a large vocabulary too",
          "[models][draw]") {
  for (const int vocab : {7, 300, 5000})
    for (const double temperature : {0.3, 1., 20.})
      for (const Index k : {0, 1, 6, 250})
        for (const double p : {0.1, 0.8, 0.999, 1.}) {
          CAPTURE(vocab, temperature, k, p);
          const Drawing d{temperature, k, p};
          const auto logits = rough_logits(vocab);
          const auto expected = filtered(logits, d);
          Drawer drawer(d);
          Rng rng(3), same(3);
          bool agree = true;
          for (int i = 0; i < 20; ++i) {
            const Id id = drawer.draw(std::span<const float>(logits), rng);
            const double at = same.uniform();
            const auto until = expected.begin() + id;
            const double below = std::accumulate(expected.begin(), until, 0.);
            agree = agree && below <= at + 1e-9 && at - 1e-9 <= below + *until && *until > 0;
          }
          CHECK(agree);
        }
}
