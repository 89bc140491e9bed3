#include "headwise/train/evaluate.hpp"

#include <cmath>
#include <limits>

#include "support/catch.hpp"
#include "support/training.hpp"

using namespace headwise;
using test::kSmallModel;
using test::kSmallTraining;
using test::Training;

namespace {

/// A decoder whose every weight is zero: each token is as likely as any.
Decoder<float> indifferent() {
  Rng rng(1);
  Decoder<float> model(kSmallModel, rng);
  for_each_param(model, [](const std::string&, Param<float>& p) {
    p.value = Tensor<float>::zeros(p.value.shape());
  });
  return model;
}

}  // namespace

TEST_CASE("a model that knows nothing has the loss ln V", "[train][evaluate]") {
  const test::OneThread quick;
  const Decoder<float> model = indifferent();
  const auto tokens = test::walk(100, 10);
  const Loss some = evaluate(model, TextSource(tokens, 8), 3, 2), all = evaluate_all(model, tokens);
  CHECK(some.mean == Approx(std::log(10.)).epsilon(1e-6));
  CHECK(some.tokens == 3 * 2 * 8);
  CHECK(all.mean == Approx(std::log(10.)).epsilon(1e-6));
  CHECK(all.tokens == 99);
}

TEST_CASE("an evaluation is the same at every call and drops nothing", "[train][evaluate]") {
  const test::OneThread quick;
  const auto model = test::rough_decoder<float>(kSmallModel, 1);
  ModelConfig config = kSmallModel;
  config.dropout = 0;
  const auto plain = test::rough_decoder<float>(config, 1);
  const auto tokens = test::walk(100, 10);
  const TextSource text(tokens, 8);
  const double loss = evaluate(model, text, 4, 5).mean;
  CHECK(loss == evaluate(model, text, 4, 5).mean);
  CHECK(loss == evaluate(plain, text, 4, 5).mean);
  CHECK(evaluate_all(model, tokens).mean == evaluate_all(plain, tokens).mean);
}

TEST_CASE("a whole text is predicted once each in windows side by side", "[train][evaluate]") {
  const test::OneThread quick;
  const auto model = test::rough_decoder<double>(kSmallModel, 1);
  for (const Index length : {2, 8, 9, 10, 17, 21}) {
    CAPTURE(length);
    const auto tokens = test::walk(length, 10);
    double total = 0;
    for (Index at = 0; at + 1 < length; at += 8) {
      const Index n = std::min<Index>(8, length - 1 - at);
      const auto from = tokens.begin() + at;
      const auto logits = Var<double>(test::infer(model, Ids({1, n}, {from, from + n})));
      const Ids next({1, n}, {from + 1, from + 1 + n});
      total += cross_entropy(logits, next).item() * static_cast<double>(n);
    }
    const Loss loss = evaluate_all(model, tokens);
    CHECK(loss.tokens == length - 1);
    CHECK(loss.mean == Approx(total / static_cast<double>(length - 1)).epsilon(1e-12));
  }
}

TEST_CASE("a text too short to evaluate is refused", "[train][evaluate][errors]") {
  const Decoder<float> model = indifferent();
  CHECK_THROWS_WITH(evaluate_all(model, {1}), "text: 1 tokens, need at least 2 to predict one");
  CHECK_THROWS_WITH(evaluate_all(model, {}), "text: 0 tokens, need at least 2 to predict one");
  CHECK_THROWS_AS(evaluate_all(model, {1}), DataError);
  const TextSource short_text(Split{.train = {}, .valid = test::walk(8, 10)}, 8);
  CHECK_THROWS_AS(evaluate(model, short_text, 1, 1), DataError);
}

TEST_CASE("an evaluation record tells of the steps since the last one", "[train][evaluate]") {
  const test::OneThread quick;
  Training<float> t(kSmallModel, kSmallTraining, 1);
  CHECK(std::isnan(t.trainer.val_loss()));
  double lowest = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 4; ++round) {
    double total = 0;
    for (const double loss : t.run(5)) total += loss;
    const EvalRecord r = t.trainer.evaluate();
    CHECK(r.step == t.trainer.steps_done());
    CHECK(r.train_loss == Approx(total / 5).epsilon(1e-14));
    CHECK(r.lr == learning_rate(kSmallTraining, r.step - 1));
    CHECK(r.val_loss == evaluate(t.model, t.text, 4, 3).mean);
    CHECK(r.best == (r.val_loss < lowest));
    lowest = std::min(lowest, r.val_loss);
    CHECK(t.trainer.val_loss() == r.val_loss);
    CHECK(t.trainer.best_val_loss() == lowest);
  }
}

TEST_CASE("evaluating does not disturb training", "[train][evaluate]") {
  const test::OneThread quick;
  Training<float> watched(kSmallModel, kSmallTraining, 1), alone(kSmallModel, kSmallTraining, 1);
  for (int i = 0; i < 4; ++i) {
    CHECK(watched.run(3) == alone.run(3));
    const double loss = watched.trainer.evaluate().val_loss;
    CHECK(watched.trainer.evaluate().val_loss == loss);
  }
  CHECK(test::same_bits(test::weights_of(watched.model), test::weights_of(alone.model)));
}
