#include "headwise/study/composition.hpp"

#include <cmath>

#include "support/catch.hpp"
#include "support/models.hpp"

using namespace headwise;
using namespace headwise::study;

namespace {

/// Two layers of four heads of width 1: W_Q, W_K and W_V of head h are the rows h, W_O its column.
ModelConfig thin() { return {.vocab = 5, .layers = 2, .heads = 4, .width = 4, .context = 4}; }

const Composition& of(const std::vector<Composition>& all, HeadId from, HeadId to) {
  for (const Composition& pair : all)
    if (pair.from == from && pair.to == to) return pair;
  throw std::runtime_error("no such pair");
}

}  // namespace

TEMPLATE_TEST_CASE("composition of heads of width 1 is a cosine", "[study]", float, double) {
  Decoder<TestType> model = test::rough_decoder<TestType>(thin(), 1);
  MultiHeadAttention<TestType>& later = model.blocks[1].attn;
  // Head 0.0 writes along (1,-1,0,0), 0.1 along (1,1,1,1), 0.2 nothing.
  model.blocks[0].attn.w_o.weight.value =
      Tensor<TestType>({4, 4}, {1, 1, 0, 9, -1, 1, 0, 9, 0, 1, 0, 9, 0, 1, 0, 9});
  model.blocks[1].ln1.weight.value = Tensor<TestType>({4}, {2, 1, 1, 1});
  later.w_q.weight.value =
      Tensor<TestType>({4, 4}, {1, -2, 0, 0, 0, 0, 1, 2, 1, 1, 1, 1, 0, 0, 0, 0});
  later.w_k.weight.value =
      Tensor<TestType>({4, 4}, {0, 0, 1, -1, 0, 0, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1});
  later.w_v.weight.value =
      Tensor<TestType>({4, 4}, {3, 0, 0, 0, 0, 0, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1});
  const std::vector<Composition> all = composition(model);
  REQUIRE(all.size() == 16);
  CHECK(all[5].from == HeadId{0, 1});
  CHECK(all[5].to == HeadId{1, 1});

  const Composition &same = of(all, {0, 0}, {1, 0}), &mean = of(all, {0, 1}, {1, 0});
  CHECK(same.q == Approx(1).epsilon(1e-12));  // (2,-2,0,0)
  CHECK(same.k == Approx(0).margin(1e-7));    // (0,0,1,-1)
  // (6,0,0,0) less its mean is 1.5 (3,-1,-1,-1): its cosine with (1,-1,0,0) is 4 / sqrt(24).
  CHECK(same.v == Approx(4 / std::sqrt(24.0)).epsilon(1e-12));
  for (const double ratio : {mean.q, mean.k, mean.v}) CHECK(ratio == Approx(0).margin(1e-7));
  // (2,1,1,1) less its mean is (3,-1,-1,-1) / 4.
  CHECK(of(all, {0, 0}, {1, 2}).q == Approx(4 / std::sqrt(24.0)).epsilon(1e-12));
  for (const auto& [from, to] : {std::pair{HeadId{0, 2}, HeadId{1, 0}}, {{0, 0}, {1, 3}}})
    CHECK(of(all, from, to).q == 0);  // one that writes nothing, one whose queries read nothing
}

TEST_CASE("composition of random heads is 1/sqrt(C) in the root mean square", "[study]") {
  const test::OneThread one;
  const ModelConfig config{.vocab = 5, .layers = 2, .heads = 4, .width = 64, .context = 4};
  double sum = 0, squares = 0, n = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    for (const Composition& pair : composition(Decoder<double>(config, rng)))
      for (const double ratio : {pair.q, pair.k, pair.v}) {
        sum += ratio, squares += ratio * ratio, n += 1;
      }
  }
  CHECK(composition_baseline(64) == 0.125);
  // Seen: 0.9992 and 0.9976 of it.
  CHECK(std::sqrt(squares / n) == Approx(0.125).epsilon(0.003));
  CHECK(sum / n == Approx(0.125).epsilon(0.005));
}
