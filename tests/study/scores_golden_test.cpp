// Scores of patterns, against NumPy: see golden/README.md and golden/scores_golden.py.
#include "headwise/study/copying.hpp"
#include "headwise/study/scores.hpp"

#include <cmath>

#include "support/golden.hpp"

using namespace headwise;
using namespace headwise::study;

namespace {

constexpr Score kScores[] = {Score::previous_token, Score::current_token,   Score::first_token,
                             Score::fixed_offset,   Score::duplicate_token, Score::prefix_matching,
                             Score::copying,        Score::entropy,         Score::confidence,
                             Score::mean_distance,  Score::locality};
constexpr Index kFigures = std::ssize(kScores) * 4;

/// One head's scores are those expected: value, chance, p and offset of each, NaN for what is not.
void check(const Scores& found, const double* expected, double tolerance) {
  for (const Score score : kScores) {
    const double* const e = expected;
    expected += 4;
    CAPTURE(name_of(score));
    REQUIRE(found.contains(score) == !std::isnan(e[0]));
    if (std::isnan(e[0])) continue;
    const Measure& m = found.at(score);
    CHECK(m.value == Approx(e[0]).epsilon(tolerance));
    CHECK(m.chance == Approx(e[1]).epsilon(tolerance));
    REQUIRE(m.p.has_value() == !std::isnan(e[2]));
    if (m.p) CHECK(std::log(*m.p) == Approx(std::log(e[2])).epsilon(tolerance).margin(tolerance));
    if (score == Score::fixed_offset) CHECK(m.offset == static_cast<Index>(e[3]));
  }
}

template <Real T>
constexpr double kScoreTolerance = std::is_same_v<T, float> ? 1e-5 : 1e-10;

const TensorFile& golden() {
  static const TensorFile file(HEADWISE_GOLDEN "/scores.safetensors");
  return file;
}

}  // namespace

TEMPLATE_TEST_CASE("scores of a pattern are what NumPy says", "[study][golden]", float, double) {
  const auto pattern = test::as<TestType>(golden().tensor<double>("pattern"));  // (2,2,12,12)
  const Tensor<double> expected = golden().tensor<double>("of_pattern");
  const Ids ids = golden().ids("ids");
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    check(pattern_scores(std::span<const TestType>(pattern.values()).subspan(i * 144, 144),
                         std::span<const Id>(ids.values).subspan(i / 2 * 12, 12)),
          expected.data() + static_cast<Index>(i) * kFigures, kScoreTolerance<TestType>);
  }
}

TEMPLATE_TEST_CASE("scores of a decoder's heads, sequences together, are what NumPy says",
                   "[study][golden]", float, double) {
  Sequences sequences{{golden().ids("inputs"), golden().ids("inputs")}, {}};
  for (const Id length : golden().ids("lengths").values) sequences.lengths.push_back(length);
  for (const char* const name : {"tied", "untied"}) {
    const auto model = test::Golden<TestType>(fmt::format("decoder_{}", name)).decoder();
    const Tensor<double> expected = golden().tensor<double>(fmt::format("of_{}", name));
    std::vector<Scores> found = pattern_scores(model, sequences);
    const auto copying = copying_scores(model, sequences);
    for (std::size_t i = 0; i < 4; ++i) {
      CAPTURE(name, i);
      found[i].emplace(Score::copying, copying[i].value());
      check(found[i], expected.data() + static_cast<Index>(i) * kFigures,
            kScoreTolerance<TestType>);
    }
  }
}
