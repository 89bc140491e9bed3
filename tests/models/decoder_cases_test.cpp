// The checks that prove the decoder.
#include "headwise/models/decoder_cases.hpp"

#include <algorithm>

#include "support/catch.hpp"
#include "support/grad_cases.hpp"
#include "support/models.hpp"
#include "support/share.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

// V 5, L 2, C 4, T 4. A projection has 16 + 4 numbers, the MLP 4 16 + 16 and 16 4 + 4, a norm 4
// + 4.
constexpr Index kTables = 5 * 4 + 4 * 4, kAttention = 4 * 20, kMlp = 80 + 68, kNorm = 8;
constexpr Index kModel = kTables + 2 * (kAttention + kMlp + 2 * kNorm) + kNorm;
const std::vector<ExpectedCase> kExpected = {
    {"Decoder", "tied", kModel},
    {"Decoder", "untied", kModel + 20},
    {"Decoder", "tanh", kModel},
    {"Decoder", "no bias", kTables + 2 * (4 * 16 + 2 * 64 + 2 * 4) + 4},
    {"Decoder", "dropout", kModel},
    {"Decoder", "attention only", kTables + 2 * (kAttention + kNorm) + kNorm},
    {"Decoder", "attention only, untied, no bias, dropout", kTables + 2 * (4 * 16 + 4) + 4 + 20},
    {"Decoder", "ignored labels", kModel},
    // 16 of each table and matrix, all 4 of each bias and gain but the MLP's 16
    {"Decoder", "large vocabulary", 2 * 16 + (2 * 4 + 4 * 20 + 2 * 4 + 2 * 16 + 16 + 4) + 2 * 4},
    {"Decoder", "large vocabulary, untied, ignored labels",
     2 * 16 + (2 * 4 + 4 * 20 + 2 * 4 + 2 * 16 + 16 + 4) + 2 * 4 + 16}};

}  // namespace

TEST_CASE("a decoder's gradients are right with every option", "[models][gradcheck]") {
  require_cases(decoder_cases<double>(), kExpected);
}

TEST_CASE("a decoder's checks hold for other seeds", "[models][gradcheck]") {
  for (const std::uint64_t seed : {std::uint64_t{2}, std::uint64_t{3}}) {
    const std::vector<GradCase> cases = decoder_cases<double>(seed);
    for (std::size_t i = 0; i < cases.size(); i += kEvery) {
      const GradReport report = cases[i].check({});
      CAPTURE(seed, cases[i].label, describe(report));
      CHECK(report.verdict == Verdict::pass);
    }
  }
}

TEST_CASE("a decoder's checks take as many elements as they are told", "[models][gradcheck]") {
  GradOptions options;
  options.sample = 2;
  for (const GradCase& c : decoder_cases<double>()) {
    CAPTURE(c.label);
    const GradReport report = c.check(options);
    CHECK(report.verdict != Verdict::fail);
    for (const TensorCheck& t : report.tensors)
      CHECK(t.elements == std::min<Index>(2, t.shape.size()));
  }
}
