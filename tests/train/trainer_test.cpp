#include "headwise/train/trainer.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include "headwise/core/safetensors.hpp"
#include "support/catch.hpp"
#include "support/numbers.hpp"
#include "support/training.hpp"

using namespace headwise;
using namespace headwise::test;
using test::kSmallModel;
using test::kSmallTraining;
using test::same_bits;
using test::Training;
using test::weights_of;

namespace {

TrainOptions with(auto change) {
  TrainOptions options = kSmallTraining;
  change(options);
  return options;
}

template <Real T>
void fill(Param<T>& p, T value) {
  p.value = Tensor<T>::full(p.value.shape(), value);
}

}  // namespace

TEST_CASE("a step reports what it did", "[train][trainer]") {
  const test::OneThread quick;
  Training<float> t(kSmallModel, kSmallTraining, 1);
  for (Index step = 0; step < 6; ++step) {
    CHECK(t.trainer.steps_done() == step);
    const StepRecord r = t.trainer.step();
    CHECK(r.step == step + 1);
    CHECK(r.lr == learning_rate(kSmallTraining, step));
    CHECK((std::isfinite(r.loss) && r.loss > 0));
    CHECK((std::isfinite(r.grad_norm) && r.grad_norm > 0));
  }
  CHECK_FALSE(t.trainer.done());
  t.run(14);
  CHECK(t.trainer.done());
}

TEST_CASE("training lowers the loss", "[train][trainer]") {
  const test::OneThread quick;
  const ModelConfig config{.vocab = 10, .layers = 2, .heads = 2, .width = 16, .context = 8};
  Training<float> t(config, with([](auto& o) { o.steps = 200; }), 1);
  const auto losses = t.run(200);
  CHECK(losses.front() == Approx(std::log(10.)).margin(0.1));
  CHECK(std::accumulate(losses.end() - 20, losses.end(), 0.) / 20 < 1.3);  // 0.97 is its entropy
}

TEST_CASE("a small model learns eight sequences by heart", "[train][trainer]") {
  const test::OneThread quick;
  Rng rng(1);
  Decoder<float> model({.vocab = 12, .layers = 2, .heads = 2, .width = 16, .context = 12}, rng);
  Ids inputs = test::random_ids({8, 12}, 12, 1), targets = inputs;
  for (std::size_t i = 0; i < 96; ++i) {
    if (i % 12 == 0) inputs.values[i] = static_cast<Id>(i / 12);  // each starts in its own way
    targets.values[i] = i % 12 == 11 ? 0 : inputs.values[i + 1];
  }
  AdamW<float> adam({.weight_decay = 0});
  const TrainOptions o{.steps = 500, .lr = 1e-2, .min_lr = 1e-3, .warmup = 20};
  double loss = 0;
  for (Index step = 0; step < o.steps; ++step) {
    zero_grad(model);
    Tape<float> tape;
    const auto l = cross_entropy(model(Ctx<float>{.tape = &tape}, inputs), targets);
    loss = static_cast<double>(l.item());
    tape.backward(l);
    adam.step(model, learning_rate(o, step), clip_factor(gradient_norm(model), 1));
  }
  CHECK(loss < 0.05);
}

TEST_CASE("a mean over unequal micro-batches is over their tokens", "[train][accumulate]") {
  // Case 47: logits [0,b] at b = 0, one token of class 1 and then three of class 0. The mean of the
  // two means would have the gradient 0.
  Param<double> b;
  b.value = Tensor<double>::zeros({1, 1});
  const Ids parts[] = {{{4}, {1, kIgnore, kIgnore, kIgnore}}, {{4}, {0, 0, kIgnore, 0}}};
  double loss = 0;
  for (const Ids& labels : parts) {
    Tape<double> tape;
    const Var<double> ones = Tensor<double>::full({4, 1}, 1), second = Tensor<double>({2}, {0, 1});
    const auto mean = cross_entropy(matmul(ones, tape.use(b)) * second, labels);
    const double share = static_cast<double>(counted(labels)) / 4;
    loss += share * mean.item();
    tape.backward(mean, share);
  }
  CHECK(loss == Approx(std::log(2.)).epsilon(1e-15));
  CHECK(b.grad.item() == Approx(0.25).epsilon(1e-15));
}

TEST_CASE("unequal micro-batches of a decoder add up to one big batch", "[train][accumulate]") {
  const test::OneThread quick;
  auto model = test::rough_decoder<double>(kSmallModel, 1);
  Batch whole{test::random_ids({6, 8}, 10, 1), test::random_ids({6, 8}, 10, 2)};
  std::fill_n(whole.targets.values.begin() + 3, 20, kIgnore);
  const auto big = test::run_pass(model, whole);

  const auto total = static_cast<double>(counted(whole.targets));
  double loss = 0;
  for (const auto& [from, to] : {std::pair(0, 24), std::pair(24, 32), std::pair(32, 48)}) {
    const auto part = [&](const Ids& ids) {
      return Ids({(to - from) / 8, 8}, {ids.values.begin() + from, ids.values.begin() + to});
    };
    const Ids labels = part(whole.targets);
    Tape<double> tape;
    const auto mean = cross_entropy(model(Ctx<double>{.tape = &tape}, part(whole.inputs)), labels);
    const double share = static_cast<double>(counted(labels)) / total;
    loss += share * mean.item();
    tape.backward(mean, share);
  }
  CHECK(loss == Approx(big.loss).epsilon(1e-13));
  for_each_param(model, [&](const std::string& name, const Param<double>& p) {
    CAPTURE(name);
    const double scale = name.ends_with("w_k.bias") ? 1 : 0;  // zero in theory
    CHECK(test::relative_gap(p.grad, big.grads.at(name), scale) < 1e-12);
  });
}

TEST_CASE("accumulating batches is training on their union", "[train][accumulate]") {
  const test::OneThread quick;
  ModelConfig config = kSmallModel;
  config.dropout = 0;  // its draws belong to places in a batch
  const auto train = [&](Index batch, Index accumulate) {
    Training<double> t(config, with([&](auto& o) { o.batch = batch, o.accumulate = accumulate; }),
                       1);
    const auto losses = t.run(5);
    return std::pair(losses, weights_of(t.model));
  };
  const auto [losses, weights] = train(12, 1);
  for (const auto& [batch, accumulate] : {std::pair(3, 4), std::pair(1, 12), std::pair(6, 2)}) {
    const auto [l, w] = train(batch, accumulate);
    for (std::size_t i = 0; i < l.size(); ++i) CHECK(l[i] == Approx(losses[i]).epsilon(1e-6));
    for (const auto& [name, x] : w) {
      CAPTURE(name);
      if (!name.ends_with("w_k.bias")) CHECK(test::relative_gap(x, weights.at(name)) < 1e-6);
    }
  }
}

TEST_CASE("a tied table stays one tensor with one pair of moments", "[train][trainer]") {
  const test::OneThread quick;
  Training<float> t(kSmallModel, kSmallTraining, 1);
  const Tensor<float> before = t.model.tok.weight.value;
  t.run(10);
  CHECK_FALSE(same_bits(before, t.model.tok.weight.value));
  CHECK_FALSE(t.model.head.has_value());
  const test::TemporaryFolder folder;
  t.trainer.save(folder / "last");
  const TensorFile file(folder / "last");
  CHECK(file.has("mean/tok.weight"));
  CHECK(file.metadata().at("updates/tok.weight") == "10");
  CHECK(file.entries().size() == 3 * weights_of(t.model).size());
  for (const auto& [name, entry] : file.entries()) CHECK(name.find("head") == std::string::npos);
  // The output still reads the same table: logits are the last norm times it.
  test::Recorder<float> probe;
  const Tensor<float> logits = test::infer(t.model, test::random_ids({1, 8}, 10, 1), &probe);
  const Var<float> again = linear(Var<float>(probe.seen.at("final")), {t.model.tok.weight.value});
  CHECK(same_bits(logits, again.value()));
}

TEST_CASE("frozen parameters stay as they are through training", "[train][trainer]") {
  const test::OneThread quick;
  Training<float> t(kSmallModel, kSmallTraining, 1);
  t.model.pos.weight.trainable = false;
  t.model.blocks[1].ln1.weight.trainable = false;
  const auto before = weights_of(t.model);
  t.run(3);
  const auto after = weights_of(t.model);
  for (const auto& [name, x] : before) {
    CAPTURE(name);
    const bool frozen = name == "pos.weight" || name == "blocks.1.ln1.weight";
    CHECK(same_bits(x, after.at(name)) == frozen);
  }
  const test::TemporaryFolder folder;
  t.trainer.save(folder / "last");
  CHECK_FALSE(TensorFile(folder / "last").has("mean/pos.weight"));
}

TEMPLATE_TEST_CASE("a loss that is not finite stops the step before anything has changed",
                   "[train][trainer][errors]", float, double) {
  const test::OneThread quick;
  Training<TestType> t(kSmallModel, kSmallTraining, 1);
  t.run(2);
  const std::string before = t.saved();
  const auto weight = [&]() -> TestType& {
    return t.model.blocks[1].attn.w_v.weight.value.data()[5];
  };
  const TestType good = std::exchange(weight(), static_cast<TestType>(kNaN));
  const std::string message = test::message_of<Error>([&] { t.trainer.step(); });
  CAPTURE(message);
  CHECK(test::mentions(message,
                       {"step 3", "the loss is", "nan",
                        fmt::format("learning rate {}", learning_rate(kSmallTraining, 2)),
                        "parameter 'blocks.1.attn.w_v.weight' is nan at element 5 of (16,16) "
                        "before the pass"}));
  weight() = good;
  CHECK((t.saved() == before));
  CHECK(t.trainer.steps_done() == 2);
}

TEST_CASE("a gradient that is not finite stops the step and is named", "[train][trainer][errors]") {
  const test::OneThread quick;
  ModelConfig config = kSmallModel;
  config.tie = false;
  config.init_std = 1;
  Training<float> t(config, with([](auto& o) { o.accumulate = 1; }), 1);
  // A stream of about 1e-36 that the last gain brings back: the way back multiplies 1e37 by 316.
  for_each_param(t.model, [](const std::string& name, Param<float>& p) {
    if (name.starts_with("blocks") && p.value.shape().rank() == 2) fill(p, 0.F);
  });
  for (Param<float>* p : {&t.model.tok.weight, &t.model.pos.weight})
    for (Index i = 0; i < p->value.size(); ++i) p->value.data()[i] *= 1e-36F;
  fill(t.model.ln_f.weight, 1e37F);
  for (Index i = 0; i < t.model.head->weight.value.size(); ++i)
    t.model.head->weight.value.data()[i] *= 30;
  const std::string before = t.saved();
  const std::string message = test::message_of<Error>([&] { t.trainer.step(); });
  CAPTURE(message);
  CHECK(message.starts_with("step 1, learning rate 0.002: gradient of 'tok.weight' is not finite"));
  CHECK(test::mentions(message, {"the backward of op", "'layer_norm' of ln_f.weight, ln_f.bias",
                                 "(before final) gave", "the gradient of its input 0"}));
  CHECK((t.saved() == before));
  CHECK(t.trainer.steps_done() == 0);
}

TEST_CASE("a learning rate of a million stops soon and keeps the last file",
          "[train][trainer][errors]") {
  const test::OneThread quick;
  Training<float> t(kSmallModel, with([](auto& o) { o.steps = 1000, o.lr = 1e6; }), 1);
  const test::TemporaryFolder folder;
  t.trainer.save(folder / "last");
  const std::string before = read_file(folder / "last");
  std::string message;
  for (int i = 0; i < 100 && message.empty(); ++i) {
    try {
      t.trainer.step();
    } catch (const Error& e) {
      message = e.what();
    }
  }
  CAPTURE(message);
  CHECK(test::mentions(message, {"step ", "learning rate ", "is"}));
  CHECK(t.trainer.steps_done() < 50);
  CHECK((read_file(folder / "last") == before));
}

TEMPLATE_TEST_CASE("a beta that is next to one is refused or harmless", "[train][trainer]", float,
                   double) {
  const test::OneThread quick;
  for (const double beta : {1 - 1e-9, std::nextafter(1., 0.)}) {  // a float takes both for 1
    try {
      Training<TestType> t(kSmallModel, with([&](auto& o) { o.beta1 = o.beta2 = beta; }), 1);
      t.run(1);
      for (const auto& [name, x] : weights_of(t.model)) {
        CAPTURE(beta, name);
        CHECK(std::isfinite(squared_norm(x)));
      }
    } catch (const UsageError&) {
      SUCCEED("refused");
    }
  }
}

TEST_CASE("a validation loss that is not finite is an error", "[train][trainer][errors]") {
  const test::OneThread quick;
  Training<float> t(kSmallModel, kSmallTraining, 1);
  t.run(1);
  fill(t.model.tok.weight, static_cast<float>(kNaN));
  const std::string message = test::message_of<Error>([&] { t.trainer.evaluate(); });
  CHECK(test::mentions(message, {"step 1", "evaluation: the loss is", "nan", "learning rate 0.002",
                                 "parameter 'tok.weight'"}));
}
