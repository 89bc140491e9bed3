#include "headwise/train/options.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "headwise/core/error.hpp"

namespace headwise {

void TrainOptions::validate() const {
  const auto at_least = [](const char* option, Index n, Index least) {
    require<UsageError>(n >= least, "{}: {} is not {} or more", option, n, least);
  };
  at_least("--batch", batch, 1);
  at_least("--accumulate", accumulate, 1);
  constexpr Index kMost = 1 << 20;
  require<UsageError>(batch <= kMost, "--batch: {} is more than {}", batch, kMost);
  require<UsageError>(accumulate <= kMost, "--accumulate: {} is more than {}", accumulate, kMost);
  at_least("--steps", steps, 1);
  at_least("--warmup", warmup, 0);
  at_least("--eval-every", eval_every, 1);
  at_least("--eval-batches", eval_batches, 1);
  require<UsageError>(std::isfinite(lr) && lr > 0, "--lr: {} is not above 0", lr);
  require<UsageError>(min_lr >= 0 && min_lr <= lr, "--min-lr: {} is not from 0 to --lr {}", min_lr,
                      lr);
  require<UsageError>(std::isfinite(weight_decay) && weight_decay >= 0,
                      "--weight-decay: {} is not 0 or more", weight_decay);
  require<UsageError>(beta1 >= 0 && beta1 < 1, "--beta1: {} is not in [0, 1)", beta1);
  require<UsageError>(beta2 >= 0 && beta2 < 1, "--beta2: {} is not in [0, 1)", beta2);
  require<UsageError>(std::isfinite(clip) && clip >= 0, "--clip: {} is not 0 or more", clip);
}

void LoopOptions::validate() const {
  LoopOptions(*this).visit([](const char* name, Index n, const char*) {
    require<UsageError>(n >= 0, "--{}: {} is not 0 or more", name, n);
  });
}

double learning_rate(const TrainOptions& o, Index step) {
  const auto number = [](Index n) { return static_cast<double>(n); };
  if (step < o.warmup) return o.lr * (number(step) + 1) / (number(o.warmup) + 1);
  if (o.schedule == Schedule::constant) return o.lr;
  if (step >= o.steps) return o.min_lr;
  const Index top = o.schedule == Schedule::wsd ? std::max(o.warmup, o.steps - o.steps / 10)
                                                : o.warmup;  // the last step at lr
  if (step <= top) return o.lr;
  const double way = number(step - top) / number(o.steps - top);
  const double left =
      o.schedule == Schedule::cosine ? 0.5 * (1 + std::cos(std::numbers::pi * way)) : 1 - way;
  return o.min_lr + left * (o.lr - o.min_lr);
}

}  // namespace headwise
