#include "headwise/study/circuits.hpp"

#include "headwise/study/composition.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/models.hpp"

using namespace headwise;
using namespace headwise::study;

namespace {

template <Real T>
Tensor<T> diagonal(Index n, T value) {
  Tensor<T> x = Tensor<T>::zeros({n, n});
  T* out = x.data();
  for (Index i = 0; i < n; ++i) out[i * (n + 1)] = value;
  return x;
}

/// One head as wide as the stream, whose W_OV is value I and whose W_QK is -I; plain norms.
template <Real T>
Decoder<T> plain_head(T value, const Tensor<T>& tokens) {
  Rng rng(1);
  Decoder<T> model({.vocab = 8, .layers = 1, .heads = 1, .width = 8, .context = 4}, rng);
  MultiHeadAttention<T>& attn = model.blocks[0].attn;
  model.tok.weight.value = tokens;
  attn.w_v.weight.value = attn.w_q.weight.value = diagonal<T>(8, 1);
  attn.w_o.weight.value = diagonal<T>(8, value);
  attn.w_k.weight.value = diagonal<T>(8, -1);
  return model;
}

}  // namespace

TEST_CASE("positivity is the sum of eigenvalues by that of their sizes", "[study]") {
  const std::vector<std::complex<double>> mixed = {{3, 4}, {3, -4}, {-2, 0}}, none = {0.0, 0.0};
  CHECK(positivity(mixed) == Approx(4.0 / 12).epsilon(1e-15));
  CHECK(positivity(none) == 0);
}

TEMPLATE_TEST_CASE("a head that passes the stream on copies", "[study]", float, double) {
  const auto random = test::random_tensor<TestType>({8, 8}, 2);
  for (const TestType value : {TestType(1), TestType(-1)}) {
    const Circuits head = circuits(plain_head(value, random))[0];
    CHECK(positivity(head.ov) == Approx(value).epsilon(1e-12));
    CHECK(positivity(head.qk) == Approx(-1).epsilon(1e-12));
  }
  // Tokens that have nothing in common: each raises itself alone, or every other alike.
  const auto apart = diagonal<TestType>(8, 1);
  const TopCopying copies = top_copying(plain_head<TestType>(1, apart), apart)[0];
  CHECK(copies.top1 == 1);
  CHECK(copies.top5 == 1);
  const TopCopying avoids = top_copying(plain_head<TestType>(-1, apart), apart)[0];
  CHECK(avoids.top1 == 0);
  CHECK(avoids.top5 == 0);
}

TEST_CASE("equal logits rank by token, and fewer tokens are spread evenly", "[study]") {
  const auto tokens = diagonal<double>(8, 1);
  const Decoder<double> silent = plain_head(0.0, tokens);
  const TopCopying all = top_copying(silent, tokens)[0];
  CHECK(all.top1 == 1.0 / 8);
  CHECK(all.top5 == 5.0 / 8);
  const TopCopying some = top_copying(silent, tokens, 4)[0];  // tokens 0, 2, 4 and 6
  CHECK(some.top1 == 1.0 / 4);
  CHECK(some.top5 == 3.0 / 4);
  CHECK(positivity(circuits(silent)[0].ov) == 0);
}

TEST_CASE("circuits refuse what they cannot read", "[study][errors]") {
  const auto tokens = diagonal<double>(8, 1);
  const Decoder<double> model = plain_head(1.0, tokens);
  CHECK(test::message_of<ShapeError>([&] { top_copying(model, diagonal<double>(4, 1)); }) ==
        "top_copying: an embedding (4,4) is not (V,C), (8,8)");
  CHECK_THROWS_AS(top_copying(model, tokens, -1), UsageError);
  Rng rng(1);
  const Decoder<double> bare(
      {.vocab = 5, .layers = 1, .heads = 1, .width = 4, .context = 4, .attention_only = true}, rng);
  CHECK(test::message_of<UsageError>([&] { effective_embedding(bare); }) ==
        "effective_embedding: the model has no MLP");
}

TEST_CASE("what weights say does not depend on the number of threads", "[study][threads]") {
  const ModelConfig config{.vocab = 1100, .layers = 2, .heads = 4, .width = 64, .context = 8};
  const Decoder<float> model = test::rough_decoder<float>(config, 5);
  const auto said = [&](int n) {
    const test::Threads some(n);
    std::vector<double> all;
    for (const Composition& pair : composition(model))
      all.insert(all.end(), {pair.q, pair.k, pair.v});
    for (const Circuits& head : circuits(model))
      all.insert(all.end(), {positivity(head.ov), positivity(head.qk)});
    const Tensor<float> effective = effective_embedding(model);
    all.insert(all.end(), effective.values().begin(), effective.values().end());
    for (const TopCopying& head : top_copying(model, effective, 100))
      all.insert(all.end(), {head.top1, head.top5});
    return all;
  };
  CHECK(said(1) == said(3));
}
