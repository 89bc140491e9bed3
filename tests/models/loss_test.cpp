// A decoder's loss, with all logits at once and, where the vocabulary is large, without.
#include "support/catch.hpp"
#include "support/models.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

constexpr Index kSmallVocab = 11, kLargeVocab = 5000;

ModelConfig config(Index vocab) {
  return {.vocab = vocab, .layers = 2, .heads = 2, .width = 16, .context = 100, .dropout = 0.1};
}

/// 300 tokens, which is more than are scored at once, some of them ignored.
Batch batch(Index vocab) {
  Batch b{random_ids({3, 100}, vocab, 1), random_ids({3, 100}, vocab, 2)};
  for (std::size_t i = 0; i < 300; i += 7) b.targets.values[i] = kIgnore;
  return b;
}

bool calls(const std::vector<std::string>& ops, const std::string& name) {
  return std::find(ops.begin(), ops.end(), name) != ops.end();
}

template <Real T>
constexpr double kClose = std::same_as<T, double> ? 1e-12 : 1e-6;

}  // namespace

TEMPLATE_TEST_CASE("a decoder's loss is cross_entropy of its logits", "[models][loss]", float,
                   double) {
  using T = TestType;
  auto model = rough_decoder<T>(config(kSmallVocab), 1, 0.1);
  const ModelPass<T> own = run_loss(model, batch(kSmallVocab)),
                     plain = run_pass(model, batch(kSmallVocab));
  CHECK(own.loss == plain.loss);
  CHECK(same_bits(own.grads, plain.grads));
}

TEMPLATE_TEST_CASE("a large vocabulary's loss is cross_entropy of its logits too", "[models][loss]",
                   float, double) {
  using T = TestType;
  for (const bool tie : {true, false}) {
    ModelConfig large = config(kLargeVocab);
    large.tie = tie;
    auto model = rough_decoder<T>(large, 1, 0.1);
    const ModelPass<T> own = run_loss(model, batch(kLargeVocab)),
                       plain = run_pass(model, batch(kLargeVocab));
    CHECK(calls(own.ops, "linear_cross_entropy"));
    CHECK_FALSE(calls(own.ops, "cross_entropy"));
    CHECK(own.loss == Approx(plain.loss).epsilon(kClose<T>));
    for (const auto& [name, gradient] : plain.grads) {
      CAPTURE(tie, name);
      const double scale = name.ends_with("w_k.bias") ? 1 : 0;  // zero in theory
      CHECK(relative_gap(own.grads.at(name), gradient, scale) < 10 * kClose<T>);
    }
  }
}

TEMPLATE_TEST_CASE("watching everything changes no bit of loss and gradients",
                   "[models][loss][probe]", float, double) {
  using T = TestType;
  for (const Index vocab : {kSmallVocab, kLargeVocab}) {
    CAPTURE(vocab);
    auto model = rough_decoder<T>(config(vocab), 1, 0.1);
    Recorder<T> probe;
    Rng random(3), same_random(3);
    const ModelPass<T> watched = run_loss<T>(model, batch(vocab), &probe, &random);
    const ModelPass<T> alone = run_loss<T>(model, batch(vocab), nullptr, &same_random);
    CHECK(watched.loss == alone.loss);
    CHECK(same_bits(watched.grads, alone.grads));
    CHECK(probe.seen.at("logits").shape() == Shape{3, 100, vocab});
    CHECK(probe.seen.contains("blocks.1.mlp.hidden"));
    CHECK(probe.seen.contains("blocks.1.attn.pattern"));
  }
}

TEST_CASE("a probe sees a large vocabulary's logits as they are", "[models][loss][probe]") {
  const auto model = rough_decoder<double>(config(kLargeVocab), 1, 0.1);
  Recorder<double> probe;
  const Batch b = batch(kLargeVocab);
  const Ctx<double> ctx{.probe = &probe};
  model.loss(ctx, b.inputs, b.targets);
  CHECK(relative_gap(probe.seen.at("logits"), infer(model, b.inputs)) < 1e-14);
}

TEST_CASE("replaced logits are what the loss is of", "[models][loss][probe]") {
  for (const Index vocab : {kSmallVocab, kLargeVocab}) {
    CAPTURE(vocab);
    const auto model = rough_decoder<double>(config(vocab), 1, 0.1);
    const Batch b = batch(vocab);
    auto flat = replacing<double>("logits", [](const Var<double>& x) {
      return Var<double>(Tensor<double>::zeros(x.shape()));
    });
    const Ctx<double> ctx{.probe = &flat};
    CHECK(model.loss(ctx, b.inputs, b.targets).item() ==
          Approx(std::log(static_cast<double>(vocab))).epsilon(1e-13));
  }
}

TEST_CASE("gradients go through replaced logits, whatever the vocabulary",
          "[models][loss][probe]") {
  for (const Index vocab : {kSmallVocab, kLargeVocab}) {
    CAPTURE(vocab);
    const auto model = rough_decoder<double>(config(vocab), 1, 0.1);
    const Batch b = batch(vocab);
    auto doubled = replacing<double>("logits", [](const Var<double>& x) { return x + x; });
    Tape<double> tape;
    const Ctx<double> ctx{.tape = &tape, .probe = &doubled};
    const Var<double> loss = model.loss(ctx, b.inputs, b.targets);
    const Var<double> logits = infer(model, b.inputs);
    CHECK(loss.item() == Approx(cross_entropy(logits + logits, b.targets).item()).epsilon(1e-13));
    tape.backward(loss);
    CHECK(model.tok.weight.grad.shape() == model.tok.weight.value.shape());
  }
}
