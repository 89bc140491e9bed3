// The gradients of whole decoders: that every one arrives, and that every one is right.
#include <algorithm>
#include <cmath>

#include "support/catch.hpp"
#include "support/models.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;
using test::random_ids;
using test::rough_decoder;

namespace {

const ModelConfig kTiny{.vocab = 5, .layers = 2, .heads = 2, .width = 4, .context = 4};

struct Case {
  std::string label;
  ModelConfig config;
};

/// Every switch of the model, once each way.
std::vector<Case> cases() {
  const auto with = [](std::string label, auto change) {
    Case c{std::move(label), kTiny};
    change(c.config);
    return c;
  };
  return {with("tied, exact", [](ModelConfig&) {}),
          with("untied, tanh", [](ModelConfig& c) { c.tie = false, c.gelu = Gelu::tanh; }),
          with("no bias", [](ModelConfig& c) { c.bias = false; }),
          with("attention only", [](ModelConfig& c) { c.attention_only = true, c.tie = false; }),
          with("dropout", [](ModelConfig& c) { c.dropout = 0.3; })};
}

/// softmax does not notice a shift of a whole row of scores, so this gradient is zero in theory.
bool is_key_bias(const std::string& name) { return name.ends_with("w_k.bias"); }

/// Position 3 and token 4 are not used, token 2 comes twice.
const Ids kIds({2, 3}, {0, 2, 1, 3, 2, 0});

}  // namespace

TEST_CASE("every parameter of a decoder gets a gradient of its own shape", "[models][gradients]") {
  const test::OneThread quick;
  for (const Case& c : cases()) {
    INFO(c.label);
    auto model = rough_decoder<double>(c.config, 3);
    const Batch batch{kIds, random_ids({2, 3}, c.config.vocab, 4)};
    Rng random(11);
    const auto pass = test::run_pass<double>(model, batch, nullptr, &random);
    for (const auto& [name, weight] : test::weights_of(model)) {
      CAPTURE(name);
      const Tensor<double>& grad = pass.grads.at(name);
      REQUIRE_FALSE(grad.empty());
      REQUIRE(grad.shape() == weight.shape());
      const double most = largest(grad);
      if (is_key_bias(name))
        CHECK(most < 1e-12);
      else
        CHECK((most > 1e-6 && most < 1e6));
    }
    const Tensor<double>& pos = pass.grads.at("pos.weight");
    for (Index row = 0; row < 4; ++row)  // a place that was not used: exactly zero
      CHECK((largest(Tensor<double>({4}, pos.values().subspan(static_cast<std::size_t>(row) * 4,
                                                              4))) == 0) == (row == 3));
  }
}

TEST_CASE("every gradient of a decoder's logits matches finite differences",
          "[models][gradcheck]") {
  for (const Case& c : cases()) {
    auto model = rough_decoder<double>(c.config, 3, 0.5);
    const GradReport report =
        gradcheck_module(model, [&](const Ctx<double>& ctx) { return model(ctx, kIds); });
    CAPTURE(c.label, describe(report));
    CHECK(report.verdict == Verdict::pass);
    CHECK(report.worst <= kGradTolerance);
    CHECK(report.elements == parameter_count(model));
    std::vector<std::string> names, checked;
    for_each_param(model, [&](const std::string& name, auto&) { names.push_back(name); });
    for (const TensorCheck& t : report.tensors) {
      CHECK(t.elements == t.shape.size());
      checked.push_back(t.name);
    }
    std::sort(names.begin(), names.end());  // the report has the order of the forward pass
    std::sort(checked.begin(), checked.end());
    CHECK(checked == names);
  }
}

TEST_CASE("gradients that are one part in a million off do not pass", "[models][gradcheck]") {
  auto model = rough_decoder<double>(kTiny, 3, 0.5);
  const GradReport report = gradcheck_module(model, [&](const Ctx<double>& ctx) {
    const Var<double> y = model(ctx, kIds);
    return record<double>("off", y.value(), {y}, [](const Tensor<double>& dy, Grads<double>& d) {
      d.add(0, mul<double>(dy, Tensor<double>::full({}, 1 + 1e-6)).value());
    });
  });
  CAPTURE(describe(report));
  CHECK(report.verdict == Verdict::fail);
  for (const TensorCheck& t : report.tensors) {
    CAPTURE(t.name);
    CHECK((t.verdict == Verdict::fail) == !is_key_bias(t.name));
  }
}

TEST_CASE("a tied table's gradient is the sum of its two uses", "[models][gradients]") {
  const test::OneThread quick;
  auto tied = rough_decoder<double>(kTiny, 3);
  ModelConfig config = kTiny;
  config.tie = false;
  auto untied = rough_decoder<double>(config, 3);
  const auto weights = test::weights_of(tied);
  for_each_param(untied, [&](const std::string& name, Param<double>& p) {
    p.value = weights.at(name == "head.weight" ? "tok.weight" : name);
  });
  const Batch batch{kIds, random_ids({2, 3}, 5, 4)};
  const auto one = test::run_pass(tied, batch), two = test::run_pass(untied, batch);
  CHECK(test::same_bits(one.logits, two.logits));
  const Tensor<double>&in = two.grads.at("tok.weight"), &out = two.grads.at("head.weight");
  Tensor<double> both = in;
  for (Index i = 0; i < both.size(); ++i) both.data()[i] += out.data()[i];
  CHECK(test::relative_gap(one.grads.at("tok.weight"), both) < 1e-14);
  CHECK(largest(in) > 1e-3);
  CHECK(largest(out) > 1e-3);
}
