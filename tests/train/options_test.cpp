// What training can be told, and the learning rate that follows.
#include "headwise/train/options.hpp"

#include <cmath>
#include <limits>

#include "headwise/core/parse.hpp"
#include "headwise/train/trainer.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/numbers.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

constexpr Schedule kSchedules[] = {Schedule::cosine, Schedule::linear, Schedule::constant,
                                   Schedule::wsd};

/// 100 steps up and 1000 down.
TrainOptions scheduled(Schedule schedule) {
  return {.steps = 1100, .lr = 1e-3, .min_lr = 1e-4, .warmup = 100, .schedule = schedule};
}

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
  CHECK(refusal([](auto& o) { o.batch = 0; }) == "batch: must be in [1, 1048576], got 0");
  CHECK(refusal([](auto& o) { o.accumulate = 0; }) == "accumulate: must be in [1, 1048576], got 0");
  CHECK(refusal([](auto& o) { o.steps = -5; }) == "steps: must be >= 1, got -5");
  CHECK(refusal([](auto& o) { o.warmup = -1; }) == "warmup: must be >= 0, got -1");
  CHECK(refusal([](auto& o) { o.eval_every = 0; }) == "eval-every: must be >= 1, got 0");
  CHECK(refusal([](auto& o) { o.eval_batches = 0; }) == "eval-batches: must be >= 1, got 0");
}

TEST_CASE("impossible rates are refused by option and value", "[train][options][errors]") {
  CHECK(refusal([](auto& o) { o.lr = 0; }) == "lr: must be finite and > 0, got 0");
  CHECK(refusal([](auto& o) { o.lr = -1; }) == "lr: must be finite and > 0, got -1");
  CHECK(refusal([](auto& o) { o.lr = kNaN; }) == "lr: must be finite and > 0, got nan");
  CHECK(refusal([](auto& o) { o.lr = kInf; }) == "lr: must be finite and > 0, got inf");
  CHECK(refusal([](auto& o) { o.min_lr = -1; }) == "min-lr: must be in [0, lr 0.001], got -1");
  CHECK(refusal([](auto& o) { o.min_lr = 0.5; }) == "min-lr: must be in [0, lr 0.001], got 0.5");
  CHECK(refusal([](auto& o) { o.min_lr = kNaN; }) == "min-lr: must be in [0, lr 0.001], got nan");
  CHECK(refusal([](auto& o) { o.weight_decay = -0.1; }) ==
        "weight-decay: must be finite and >= 0, got -0.1");
  CHECK(refusal([](auto& o) { o.weight_decay = kInf; }) ==
        "weight-decay: must be finite and >= 0, got inf");
  CHECK(refusal([](auto& o) { o.beta1 = 1; }) == "beta1: must be in [0, 1), got 1");
  CHECK(refusal([](auto& o) { o.beta2 = -0.5; }) == "beta2: must be in [0, 1), got -0.5");
  CHECK(refusal([](auto& o) { o.beta2 = kNaN; }) == "beta2: must be in [0, 1), got nan");
  CHECK(refusal([](auto& o) { o.clip = -1; }) == "clip: must be finite and >= 0, got -1");
  CHECK(refusal([](auto& o) { o.clip = kNaN; }) == "clip: must be finite and >= 0, got nan");
}

TEST_CASE("a trainer takes no impossible options", "[train][options][errors]") {
  Rng rng(1);
  Decoder<float> model({.vocab = 4, .layers = 1, .heads = 1, .width = 4, .context = 4}, rng);
  const TextSource text(Split(), 4);
  CHECK_THROWS_WITH(Trainer<float>(model, {.lr = 0}, text, 1), "lr: must be finite and > 0, got 0");
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

TEST_CASE("the learning rate falls along a straight line to its end", "[train][schedule]") {
  const TrainOptions o = scheduled(Schedule::linear);
  CHECK(learning_rate(o, 100) == 1e-3);
  CHECK(learning_rate(o, 350) == Approx(7.75e-4).epsilon(1e-12));  // a quarter of the way
  CHECK(learning_rate(o, 600) == Approx(5.5e-4).epsilon(1e-12));
  CHECK(learning_rate(o, 1099) == Approx(1e-4 + 9e-4 / 1000).epsilon(1e-12));
}

TEST_CASE("a constant learning rate stays where the warm-up ends", "[train][schedule]") {
  const TrainOptions o = scheduled(Schedule::constant);
  for (const Index step : {100, 101, 600, 1099, 1100, 5000}) CHECK(learning_rate(o, step) == 1e-3);
}

TEST_CASE("warm-up, stable, decay falls in the last tenth alone", "[train][schedule]") {
  const TrainOptions o = scheduled(Schedule::wsd);
  for (Index step = 100; step <= 990; ++step) CHECK(learning_rate(o, step) == 1e-3);
  CHECK(learning_rate(o, 991) == Approx(1e-3 - 9e-4 / 110).epsilon(1e-12));
  CHECK(learning_rate(o, 1045) == Approx(5.5e-4).epsilon(1e-12));  // half way down
  CHECK(learning_rate(o, 1099) == Approx(1e-4 + 9e-4 / 110).epsilon(1e-12));
  const TrainOptions late{
      .steps = 100, .lr = 1, .min_lr = 0, .warmup = 96, .schedule = Schedule::wsd};
  CHECK(learning_rate(late, 95) == 96. / 97);  // a warm-up into the last tenth goes on
  CHECK(learning_rate(late, 96) == 1);
  CHECK(learning_rate(late, 98) == 0.5);
  const TrainOptions few{.steps = 9, .lr = 1, .min_lr = 0, .warmup = 2, .schedule = Schedule::wsd};
  CHECK(learning_rate(few, 8) == 1);  // a tenth of nine steps is none
  CHECK(learning_rate(few, 9) == 0);
}

TEST_CASE("every schedule warms up alike and never rises again", "[train][schedule]") {
  for (const Schedule schedule : kSchedules) {
    CAPTURE(name_of(schedule));
    const TrainOptions o = scheduled(schedule);
    for (Index step = 0; step < 100; ++step)
      CHECK(learning_rate(o, step) == 1e-3 * static_cast<double>(step + 1) / 101);
    for (Index step = 101; step <= 1200; ++step)
      CHECK(learning_rate(o, step) <= learning_rate(o, step - 1));
    const double end = schedule == Schedule::constant ? 1e-3 : 1e-4;
    CHECK(learning_rate(o, 1099) >= end);
    CHECK(learning_rate(o, 1100) == end);
    CHECK(learning_rate(o, 5000) == end);
  }
}

TEST_CASE("a schedule without a warm-up or with nothing else is no trap", "[train][schedule]") {
  for (const Schedule schedule : kSchedules) {
    CAPTURE(name_of(schedule));
    TrainOptions o{.steps = 10, .lr = 1e-3, .min_lr = 1e-4, .warmup = 0, .schedule = schedule};
    CHECK(learning_rate(o, 0) == 1e-3);
    for (const Index warmup : {10, 20}) {
      o.warmup = warmup;
      for (Index step = 0; step < 10; ++step) {
        CHECK(learning_rate(o, step) > 0);
        CHECK(learning_rate(o, step) < 1e-3);
      }
    }
    o.steps = 1;
    o.warmup = 0;
    CHECK(learning_rate(o, 0) == 1e-3);
  }
}
