// Steps that cannot be taken: nothing that is not finite, or that nobody asked for, leaves them.
#include <limits>

#include "support/catch.hpp"
#include "support/training.hpp"

using namespace headwise;
using test::kSmallModel;
using test::kSmallTraining;
using test::mentions;
using test::message_of;
using test::Training;

namespace {

/// Windows of a text, of which a part of the labels counts.
struct Labelled : Source {
  TextSource text{test::walk(600, kSmallModel.vocab), kSmallModel.context};
  Index counts = 0;  ///< labels that count, from a batch's first on

  explicit Labelled(Index n) : counts(n) {}
  [[nodiscard]] Batch train(Index batch, Rng& rng) const override {
    return cut(text.train(batch, rng));
  }
  [[nodiscard]] Batch valid(Index batch, Rng& rng) const override {
    return cut(text.valid(batch, rng));
  }

 private:
  [[nodiscard]] Batch cut(Batch b) const {
    std::fill(b.targets.values.begin() + counts, b.targets.values.end(), kIgnore);
    return b;
  }
};

std::map<std::string, Tensor<float>> weights_of(Decoder<float>& model) {
  std::map<std::string, Tensor<float>> all;
  for_each_param(model, [&](const std::string& name, Param<float>& p) { all[name] = p.value; });
  return all;
}

}  // namespace

TEST_CASE("a step in which no label counts is refused and changes nothing", "[train][errors]") {
  const test::OneThread quick;
  Rng rng(1);
  Decoder<float> model(kSmallModel, rng);
  const Labelled nothing(0);
  Trainer<float> trainer(model, kSmallTraining, nothing, 1);
  const auto before = weights_of(model);
  CHECK_THROWS_WITH(trainer.step(),
                    "step 1: none of its 64 labels counts (each is -100), so it has no loss");
  for (const auto& [name, x] : weights_of(model)) CHECK(test::same_bits(x, before.at(name)));
  CHECK(trainer.steps_done() == 0);
  CHECK_THROWS_WITH(trainer.evaluate(), "evaluation: no label of 3 batches counts");
  CHECK(trainer.best_val_loss() == std::numeric_limits<double>::infinity());
}

TEST_CASE("a batch of whose groups one has no label trains on the others", "[train]") {
  const test::OneThread quick;
  Rng rng(1);
  Decoder<float> model(kSmallModel, rng);
  const Labelled one(1);
  Trainer<float> trainer(model, kSmallTraining, one, 1);
  const StepRecord record = trainer.step();
  CHECK((std::isfinite(record.loss) && record.loss > 0));
  CHECK((std::isfinite(record.grad_norm) && record.grad_norm > 0));
}

TEST_CASE("a rate that throws the weights far away is told with the op that overflows",
          "[train][errors]") {
  const test::OneThread quick;
  TrainOptions options = kSmallTraining;
  options.lr = options.min_lr = 1e30;
  options.schedule = Schedule::constant;
  options.warmup = 0;
  Training<float> t(kSmallModel, options, 1);
  t.trainer.step();
  const std::string good = t.saved();
  const std::string message = message_of<NotFinite>([&] { t.trainer.step(); });
  CAPTURE(message);
  CHECK(mentions(message, {"step 2, learning rate 1e+30: the loss is nan; op ", "gave ",
                           "(before blocks.0.", "it was given ", "up to "}));
  CHECK((t.saved() == good));  // the state before that step
}

TEST_CASE("an update that makes a weight infinite is told, and such a state is not saved",
          "[train][errors]") {
  const test::OneThread quick;
  TrainOptions options = kSmallTraining;
  options.lr = options.min_lr = 3e38;
  options.schedule = Schedule::constant;
  options.warmup = 0;
  options.beta1 = 0.99;
  Training<float> t(kSmallModel, options, 1);
  const std::string before = t.saved();
  const test::TemporaryFolder folder;
  t.trainer.save(folder / "good");
  const std::string message = message_of<NotFinite>([&] { t.trainer.step(); });
  CAPTURE(message);
  CHECK(mentions(message,
                 {"step 1: adamw: after the update by learning rate 3e+38 '", "' is not finite"}));
  CHECK(t.trainer.steps_done() == 0);
  CHECK(
      mentions(message_of<NotFinite>([&] { t.trainer.save(folder / "last"); }), {"is not finite"}));

  t.trainer.load(folder / "good");  // a good state takes it back
  CHECK((t.saved() == before));
}

TEST_CASE("a rate that is no float is refused before anything changes", "[train][errors]") {
  const test::OneThread quick;
  TrainOptions options = kSmallTraining;
  options.lr = options.min_lr = 1e100;
  options.warmup = 0;
  CHECK_THROWS_WITH(Training<float>(kSmallModel, options, 1),
                    "lr: must be finite in this precision, got 1e+100");
  CHECK_NOTHROW(Training<double>(kSmallModel, options, 1));
}

TEST_CASE("the op is named in the group and with the draws in which it happened",
          "[train][errors]") {
  const test::OneThread quick;
  TrainOptions options = kSmallTraining;
  options.accumulate = 3;
  ModelConfig config = kSmallModel;
  config.dropout = 0.5;
  Training<float> t(config, options, 1);
  // q and k are near 1e25, so q k^T overflows whatever the order of its sums.
  for (Param<float>* p : {&t.model.blocks[1].attn.w_q.weight, &t.model.blocks[1].attn.w_k.weight}) {
    float* w = p->value.data();
    for (Index i = 0; i < p->value.size(); ++i) w[i] = 1e25F * static_cast<float>(i * i % 7 - 3);
  }
  const std::string message = message_of<NotFinite>([&] { t.trainer.step(); });
  CAPTURE(message);
  CHECK(
      mentions(message, {"the loss is nan; op ", "'attention' (before blocks.1.attn.z) gave nan"}));
}

TEST_CASE("an evaluation of weights that are not finite names them", "[train][evaluate][errors]") {
  const test::OneThread quick;
  Training<float> t(kSmallModel, kSmallTraining, 1);
  t.model.ln_f.bias.value.data()[3] = std::numeric_limits<float>::quiet_NaN();
  const std::string expected =
      "evaluation: the loss is nan; parameter 'ln_f.bias' is nan at element 3 of (16) before the "
      "pass";
  CHECK_THROWS_WITH(evaluate(t.model, t.text, 2, 2), expected);
  CHECK_THROWS_WITH(evaluate_all(t.model, test::walk(50, 10)), expected);
}
