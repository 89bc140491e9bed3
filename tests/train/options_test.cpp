// What training can be told, and the learning rate that follows.
#include "headwise/train/options.hpp"

#include <cmath>
#include <limits>

#include "headwise/train/trainer.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace headwise;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::string refusal(auto change) {
  TrainOptions options;
  change(options);
  return test::message_of<UsageError>([&] { options.validate(); });
}

}  // namespace

TEST_CASE("the default training options are possible", "[train][options]") {
  CHECK_NOTHROW(TrainOptions{}.validate());
  CHECK_NOTHROW(TrainOptions{.lr = 1e-3, .min_lr = 1e-3, .warmup = 0, .clip = 0}.validate());
  CHECK_NOTHROW(TrainOptions{.min_lr = 0, .weight_decay = 0, .beta1 = 0, .beta2 = 0}.validate());
}

TEST_CASE("impossible counts are refused by option and value", "[train][options][errors]") {
  CHECK(refusal([](auto& o) { o.batch = 0; }) == "--batch: 0 is not 1 or more");
  CHECK(refusal([](auto& o) { o.accumulate = 0; }) == "--accumulate: 0 is not 1 or more");
  CHECK(refusal([](auto& o) { o.steps = -5; }) == "--steps: -5 is not 1 or more");
  CHECK(refusal([](auto& o) { o.warmup = -1; }) == "--warmup: -1 is not 0 or more");
  CHECK(refusal([](auto& o) { o.eval_every = 0; }) == "--eval-every: 0 is not 1 or more");
  CHECK(refusal([](auto& o) { o.eval_batches = 0; }) == "--eval-batches: 0 is not 1 or more");
}

TEST_CASE("impossible rates are refused by option and value", "[train][options][errors]") {
  CHECK(refusal([](auto& o) { o.lr = 0; }) == "--lr: 0 is not above 0");
  CHECK(refusal([](auto& o) { o.lr = -1; }) == "--lr: -1 is not above 0");
  CHECK(refusal([](auto& o) { o.lr = kNan; }) == "--lr: nan is not above 0");
  CHECK(refusal([](auto& o) { o.lr = kInf; }) == "--lr: inf is not above 0");
  CHECK(refusal([](auto& o) { o.min_lr = -1; }) == "--min-lr: -1 is not from 0 to --lr 0.001");
  CHECK(refusal([](auto& o) { o.min_lr = 0.5; }) == "--min-lr: 0.5 is not from 0 to --lr 0.001");
  CHECK(refusal([](auto& o) { o.min_lr = kNan; }) == "--min-lr: nan is not from 0 to --lr 0.001");
  CHECK(refusal([](auto& o) { o.weight_decay = -0.1; }) == "--weight-decay: -0.1 is not 0 or more");
  CHECK(refusal([](auto& o) { o.weight_decay = kInf; }) == "--weight-decay: inf is not 0 or more");
  CHECK(refusal([](auto& o) { o.beta1 = 1; }) == "--beta1: 1 is not in [0, 1)");
  CHECK(refusal([](auto& o) { o.beta2 = -0.5; }) == "--beta2: -0.5 is not in [0, 1)");
  CHECK(refusal([](auto& o) { o.beta2 = kNan; }) == "--beta2: nan is not in [0, 1)");
  CHECK(refusal([](auto& o) { o.clip = -1; }) == "--clip: -1 is not 0 or more");
  CHECK(refusal([](auto& o) { o.clip = kNan; }) == "--clip: nan is not 0 or more");
}

TEST_CASE("a trainer takes no impossible options", "[train][options][errors]") {
  Rng rng(1);
  Decoder<float> model({.vocab = 4, .layers = 1, .heads = 1, .width = 4, .context = 4}, rng);
  const Split text;
  CHECK_THROWS_WITH(Trainer<float>(model, {.lr = 0}, text, 1), "--lr: 0 is not above 0");
}

TEST_CASE("the learning rate never starts at zero and reaches its peak after the warm-up",
          "[train][schedule]") {
  for (const double min_lr : {0., 6e-5}) {
    const TrainOptions o{.steps = 10000, .lr = 6e-4, .min_lr = min_lr, .warmup = 2000};
    CHECK(learning_rate(o, 0) == Approx(2.99850e-7).epsilon(1e-5));
    CHECK(learning_rate(o, 0) == 6e-4 / 2001);
    CHECK(learning_rate(o, 1999) == Approx(6e-4 * 2000 / 2001).epsilon(1e-15));
    CHECK(learning_rate(o, 1999) < 6e-4);
    CHECK(learning_rate(o, 2000) == 6e-4);
    CHECK(learning_rate(o, 2001) < 6e-4);
  }
}

TEST_CASE("the learning rate falls along a cosine to its end", "[train][schedule]") {
  const TrainOptions o{.steps = 1100, .lr = 1e-3, .min_lr = 1e-4, .warmup = 100};
  CHECK(learning_rate(o, 600) == Approx(5.5e-4).epsilon(1e-12));  // half way
  CHECK(learning_rate(o, 350) == Approx(1e-4 + 9e-4 * 0.5 * (1 + std::sqrt(0.5))).epsilon(1e-12));
  for (Index step = 101; step < 1100; ++step)
    CHECK(learning_rate(o, step) < learning_rate(o, step - 1));
  CHECK(learning_rate(o, 1099) > 1e-4);
  CHECK(learning_rate(o, 1100) == 1e-4);
  CHECK(learning_rate(o, 5000) == 1e-4);
}

TEST_CASE("a schedule without a warm-up or with nothing else is no trap", "[train][schedule]") {
  const TrainOptions none{.steps = 10, .lr = 1e-3, .min_lr = 1e-4, .warmup = 0};
  CHECK(learning_rate(none, 0) == 1e-3);
  for (const Index warmup : {10, 20}) {
    const TrainOptions all{.steps = 10, .lr = 1e-3, .min_lr = 1e-4, .warmup = warmup};
    for (Index step = 0; step < 10; ++step) {
      CHECK(learning_rate(all, step) > 0);
      CHECK(learning_rate(all, step) < 1e-3);
    }
  }
}
