// Decoders against PyTorch: see golden/README.md.
#include <cmath>

#include "headwise/train/trainer.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;
using test::Golden;
using test::relative_gap;

namespace {

template <Real T>
constexpr double kTolerance = std::is_same_v<T, float> ? 1e-5 : 1e-10;

/// What the gap of a gradient is measured by besides itself: a key bias, zero in theory, by the
/// largest gradient of its layer.
template <Real T>
double scale_of(const Golden<T>& golden, const std::string& name) {
  if (!name.ends_with("w_k.bias")) return 0;
  const std::string layer = name.substr(0, name.size() - std::string("w_k.bias").size());
  double most = 0;
  for (const char* part : {"w_q", "w_k", "w_v", "w_o"})
    most = std::max(most, largest(golden.exact(fmt::format("grad/{}{}.weight", layer, part))));
  return most;
}

template <Real T>
void check_one_pass(const std::string& name) {
  const Golden<T> golden(name);
  Decoder<T> model = golden.decoder();
  test::Recorder<T> probe;
  const test::ModelPass<T> pass = test::run_pass(model, golden.batch(), &probe);
  CHECK(relative_gap(pass.logits, golden.exact("logits")) <= kTolerance<T>);
  CHECK(std::fabs(pass.loss - golden.exact("loss").item()) <= kTolerance<T>);
  for (Index i = 0; i < model.config.layers; ++i)
    CHECK(relative_gap(probe.seen.at(fmt::format("blocks.{}.attn.pattern", i)),
                       golden.exact(fmt::format("pattern.{}", i))) <= kTolerance<T>);
  for (const auto& [parameter, grad] : pass.grads) {
    CAPTURE(parameter);
    CHECK(relative_gap(grad, golden.exact("grad/" + parameter), scale_of(golden, parameter)) <=
          kTolerance<T>);
  }
}

template <Real T>
void check_ten_steps(const std::string& name) {
  const Golden<T> golden(name);
  const TrainOptions options{.steps = golden.count("steps"),
                             .lr = golden.number("peak_lr"),
                             .min_lr = golden.number("min_lr"),
                             .warmup = golden.count("warmup")};
  AdamW<T> adam({.weight_decay = golden.number("weight_decay"),
                 .beta1 = golden.number("beta1"),
                 .beta2 = golden.number("beta2"),
                 .eps = golden.number("adam_eps")});
  Decoder<T> model = golden.decoder();
  const Tensor<double> losses = golden.exact("losses"), norms = golden.exact("norms"),
                       rates = golden.exact("lrs");
  const Batch batch = golden.batch();
  REQUIRE(losses.size() == options.steps);
  for (Index step = 0; step < options.steps; ++step) {
    CAPTURE(step);
    zero_grad(model);
    Tape<T> tape;
    const Var<T> loss = cross_entropy(model(Ctx<T>{.tape = &tape}, batch.inputs), batch.targets);
    CHECK(std::fabs(static_cast<double>(loss.item()) - losses.data()[step]) <= 1e-6);
    tape.backward(loss);
    const double norm = gradient_norm(model), lr = learning_rate(options, step);
    CHECK(std::fabs(norm / norms.data()[step] - 1) <= 10 * kTolerance<T>);
    CHECK(std::fabs(lr - rates.data()[step]) <= 1e-15);
    adam.step(model, lr, clip_factor(norm, golden.number("max_norm")));
  }
  if (std::is_same_v<T, float>) return;
  for_each_param(model, [&](const std::string& parameter, const Param<T>& p) {
    CAPTURE(parameter);
    // Adam divides a key bias's gradient, rounding noise, by its own size: README.md there.
    const double tolerance = parameter.ends_with("w_k.bias") ? 1e-6 : 1e-9;
    CHECK(relative_gap(p.value, golden.exact("after/" + parameter)) <= tolerance);
  });
}

}  // namespace

TEST_CASE("the golden decoders are one of each kind", "[models][golden]") {
  const ModelConfig tied = Golden<double>("decoder_tied").config(),
                    untied = Golden<double>("decoder_untied").config();
  CHECK((tied.tie && tied.bias && tied.gelu == Gelu::tanh));
  CHECK((!untied.tie && !untied.bias && untied.gelu == Gelu::exact));
}

TEMPLATE_TEST_CASE("logits and loss and patterns and gradients equal PyTorch's", "[models][golden]",
                   float, double) {
  const test::OneThread quick;
  for (const char* name : {"decoder_tied", "decoder_untied"}) {
    INFO(name);
    check_one_pass<TestType>(name);
  }
}

TEMPLATE_TEST_CASE("ten clipped AdamW steps equal PyTorch's", "[models][golden]", float, double) {
  const test::OneThread quick;
  for (const char* name : {"decoder_tied", "decoder_untied"}) {
    INFO(name);
    check_ten_steps<TestType>(name);
  }
}

TEST_CASE("the other GELU is noticed", "[models][golden]") {
  const test::OneThread quick;
  const Golden<double> golden("decoder_tied");
  Decoder<double> model = golden.decoder();
  for (Block<double>& block : model.blocks) block.mlp->kind = Gelu::exact;
  const test::ModelPass<double> pass = test::run_pass(model, golden.batch());
  CHECK(relative_gap(pass.logits, golden.exact("logits")) > 1e-5);
}
