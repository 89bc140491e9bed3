#include "headwise/study/attribution.hpp"

#include <algorithm>
#include <cmath>

#include "headwise/study/recording.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/models.hpp"

using namespace headwise;
using namespace headwise::test;
using namespace headwise::study;

namespace {

const ModelConfig kModel{.vocab = 11, .layers = 2, .heads = 2, .width = 8, .context = 6};

Tensor<double> row(const Attribution& from, const std::string& component) {
  const auto at = std::find(from.components.begin(), from.components.end(), component);
  REQUIRE(at != from.components.end());
  const auto n = static_cast<std::size_t>(from.logits.size());
  const auto i = static_cast<std::size_t>(at - from.components.begin());
  return Tensor<double>(from.logits.shape(), from.values.values().subspan(i * n, n));
}

/// What a component (B,T,C) adds to the targets' logits, by the model's own ops: <W_U[target],
/// gain (x - mean x)> / sigma of the stream.
Tensor<double> plainly(const Decoder<double>& model, const Tensor<double>& component,
                       const Tensor<double>& stream, const Ids& targets) {
  const Var<double> x(component), all(stream);
  const Var<double> centred = all - mean(all, {-1}, true);
  const Var<double> sigma =
      sqrt(mean(square(centred), {-1}, true) + Var<double>(Tensor<double>({1}, {1e-5})));
  const Var<double> read = (x - mean(x, {-1}, true)) / sigma * Var<double>(model.ln_f.weight.value);
  const Var<double> table(model.head ? model.head->weight.value : model.tok.weight.value);
  return sum(read * embedding(table, targets), {-1}).value();
}

}  // namespace

TEMPLATE_TEST_CASE("a logit is the sum of its components", "[study]", float, double) {
  const double tolerance = std::is_same_v<TestType, float> ? 1e-4 : 1e-10;
  const Ids ids = test::random_ids({2, 6}, 11, 1), targets = test::random_ids({2, 6}, 11, 2);
  for (const bool attention_only : {false, true})
    for (const bool bias : {false, true})
      for (const bool tie : {false, true}) {
        CAPTURE(attention_only, bias, tie);
        ModelConfig config = kModel;
        config.attention_only = attention_only, config.bias = bias, config.tie = tie;
        const auto model = test::rough_decoder<TestType>(config, 3);
        const Attribution parts = attribute_logits(model, ids, targets);
        CHECK(parts.components.size() == 2u + 4u + (attention_only ? 0u : 2u) + (bias ? 3u : 0u));
        CHECK(parts.values.shape() == Shape{static_cast<Index>(parts.components.size()), 2, 6});
        CHECK(largest(parts.remainder) <= tolerance * largest(parts.logits));
        const auto logits = model({}, ids).value();
        for (Index i = 0; i < 12; ++i)
          CHECK(parts.logits.data()[i] ==
                logits.data()[i * 11 + targets.values[static_cast<std::size_t>(i)]]);
      }
}

TEST_CASE("each component adds what it writes, through the last norm", "[study]") {
  const Decoder<double> model = test::rough_decoder<double>(kModel, 4);
  const Ids ids = test::random_ids({2, 6}, 11, 5), targets = test::random_ids({2, 6}, 11, 6);
  const Attribution parts = attribute_logits(model, ids, targets);
  CHECK(parts.components == std::vector<std::string>{"embed", "position", "0.0", "0.1",
                                                     "attn bias 0", "mlp 0", "1.0", "1.1",
                                                     "attn bias 1", "mlp 1", "norm bias"});
  test::Recorder<double> seen;
  test::infer(model, ids, &seen);
  const auto check = [&](const std::string& name, const Var<double>& x) {
    CAPTURE(name);
    const Tensor<double> expected =
        plainly(model, x.value(), seen.seen.at("blocks.1.resid_post"), targets);
    CHECK(test::relative_gap(row(parts, name), expected) < 1e-12);
  };
  const auto at = [&](const char* name) { return Var<double>(seen.seen.at(name)); };
  const Var<double> position =
      embedding(Var<double>(model.pos.weight.value), Ids({1, 6}, {0, 1, 2, 3, 4, 5}));
  check("embed", at("embed") - position);
  check("mlp 1", at("blocks.1.mlp.out"));
  const MultiHeadAttention<double>& attn = model.blocks[0].attn;
  const Var<double> w_o = slice(Var<double>(attn.w_o.weight.value), 1, 4, 8);
  check("0.1", linear(slice(at("blocks.0.attn.z"), 2, 4, 8), w_o));
  check("attn bias 0",
        Var<double>(Tensor<double>::zeros({2, 6, 8})) + Var<double>(attn.w_o.bias.value));
}

TEST_CASE("attribution refuses targets that are no tokens", "[study][errors]") {
  const Decoder<double> model = test::rough_decoder<double>(kModel, 4);
  const Ids ids({1, 2}, {1, 2});
  CHECK(test::message_of<ShapeError>([&] {
          attribute_logits(model, ids, Ids({2}, {1, 2}));
        }) == "attribute_logits: ids (1,2) and targets (2) do not fit");
  CHECK_THROWS_AS(attribute_logits(model, ids, Ids({1, 2}, {1, kIgnore})), ShapeError);
}
