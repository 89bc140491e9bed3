// A small model's batch is cut into groups that run side by side: 48 sequences of 8 tokens into
// two. Nobody can tell from the results.
#include <algorithm>

#include "headwise/core/safetensors.hpp"
#include "support/catch.hpp"
#include "support/training.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

/// Without momentum, so that the mean which is saved is the gradient of the last step.
TrainOptions options(Index batch, Index accumulate = 1) {
  TrainOptions o = kSmallTraining;
  o.batch = batch;
  o.accumulate = accumulate;
  o.beta1 = 0;
  o.clip = 0;
  return o;
}

ModelConfig config(double dropout) {
  ModelConfig c = kSmallModel;
  c.dropout = dropout;
  return c;
}

template <Real T>
constexpr double kClose = std::same_as<T, double> ? 1e-12 : 1e-6;

/// Loss and gradients of the first step on a text.
template <Real T>
ModelPass<T> first_step(const ModelConfig& c, const TrainOptions& o,
                        const std::vector<Id>& tokens) {
  auto model = rough_decoder<T>(c, 1);
  const TextSource text(Split{.train = tokens, .valid = tokens}, c.context);
  Trainer<T> trainer(model, o, text, 1);
  ModelPass<T> pass;
  pass.loss = trainer.step().loss;
  const TemporaryFolder folder;
  trainer.save(folder / "state");
  const TensorFile file(folder / "state");
  for (const auto& [name, weight] : weights_of(model))
    pass.grads[name] = file.tensor<T>("mean/" + name);
  return pass;
}

template <Real T>
void check_close(const ModelPass<T>& found, const ModelPass<T>& expected) {
  CHECK(found.loss == Approx(expected.loss).epsilon(kClose<T>));
  for (const auto& [name, gradient] : expected.grads) {
    CAPTURE(name);
    const double scale = name.ends_with("w_k.bias") ? 1 : 0;  // zero in theory
    CHECK(relative_gap(found.grads.at(name), gradient, scale) < kClose<T>);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("a run in groups has the same bits on any number of threads",
                   "[train][threads][groups]", float, double) {
  const auto trained = [](int threads) {
    const Threads guard(threads);
    Training<TestType> t(kSmallModel, options(48, 2), 1);
    t.run(20);
    return t.saved();
  };
  const std::string one = trained(1);
  CHECK((trained(2) == one));
  CHECK((trained(4) == one));
}

TEST_CASE("groups have the loss and the gradients of one tape over the whole batch",
          "[train][groups]") {
  const OneThread quick;
  const std::vector<Id> window = walk(9, 10);  // there is no other to draw
  auto model = rough_decoder<double>(config(0), 1);
  std::vector<Id> inputs, targets;
  for (int i = 0; i < 48; ++i) {
    inputs.insert(inputs.end(), window.begin(), window.end() - 1);
    targets.insert(targets.end(), window.begin() + 1, window.end());
  }
  const Batch whole{Ids({48, 8}, std::move(inputs)), Ids({48, 8}, std::move(targets))};
  check_close(first_step<double>(config(0), options(48), window), run_pass(model, whole));
}

TEMPLATE_TEST_CASE("groups are the batches that would be drawn one after the other",
                   "[train][groups][accumulate]", float, double) {
  using T = TestType;
  const OneThread quick;
  const std::vector<Id> text = walk(600, 10);
  const ModelPass<T> apart = first_step<T>(config(0), options(12, 4), text);
  check_close(first_step<T>(config(0), options(48), text), apart);
  check_close(first_step<T>(config(0), options(24, 2), text), apart);
}

TEST_CASE("each group has dropout of its own", "[train][groups][dropout]") {
  const OneThread quick;
  const std::vector<Id> window = walk(9, 10);
  // 24 sequences are one group, the first of 48: a second with the same masks would not show.
  const auto loss = [&](double dropout, Index batch) {
    return first_step<double>(config(dropout), options(batch), window).loss;
  };
  CHECK(loss(0, 48) == Approx(loss(0, 24)).epsilon(1e-12));
  CHECK(std::fabs(loss(0.3, 48) - loss(0.3, 24)) > 1e-4);
}

TEST_CASE("a loss that is not finite in one group stops the step", "[train][groups][errors]") {
  const Threads two(2);
  ModelConfig c = config(0);
  c.tie = false;  // else every row of logits would feel it
  Rng rng(1);
  Decoder<float> model(c, rng);
  std::fill_n(model.tok.weight.value.data() + 9 * 16, 16, std::numeric_limits<float>::quiet_NaN());
  std::vector<Id> tokens = walk(600, 9);
  tokens[300] = 9;  // one window in 75 has it
  const TextSource text(Split{.train = tokens, .valid = {}}, c.context);
  TrainOptions some = options(48);
  some.freeze = "tok.weight";  // else the first update would look at it
  Trainer<float> trainer(model, some, text, 1);
  std::string message;
  Index done = 0;
  while (message.empty() && done < 50) {
    done = trainer.steps_done();
    message = message_of<Error>([&] { trainer.step(); });
    if (message == "nothing was thrown") message.clear();
  }
  CAPTURE(message);
  const auto rate = fmt::format("learning rate {}", learning_rate(options(48), done));
  CHECK(mentions(message, {fmt::format("step {},", done + 1), "the loss is", "nan", rate,
                           "parameter 'tok.weight' is nan at element 144 of (10,16)"}));
  CHECK(trainer.steps_done() == done);
}
