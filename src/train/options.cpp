#include "headwise/train/options.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "headwise/core/error.hpp"

namespace headwise {

void TrainOptions::validate() const {
  const auto at_least = [](const char* name, Index n, Index least) {
    require<ParameterError>(n >= least, "{}: must be >= {}, got {}", name, least, n);
  };
  const auto counted = [](const char* name, Index n) {
    constexpr Index kMost = 1 << 20;
    require<ParameterError>(n >= 1 && n <= kMost, "{}: must be in [1, {}], got {}", name, kMost, n);
  };
  const auto not_negative = [](const char* name, double x) {
    require<ParameterError>(std::isfinite(x) && x >= 0, "{}: must be finite and >= 0, got {}", name,
                            x);
  };
  const auto decay = [](const char* name, double beta) {
    require<ParameterError>(beta >= 0 && beta < 1, "{}: must be in [0, 1), got {}", name, beta);
  };
  counted("batch", batch);
  counted("accumulate", accumulate);
  at_least("steps", steps, 1);
  at_least("warmup", warmup, 0);
  at_least("eval-every", eval_every, 1);
  at_least("eval-batches", eval_batches, 1);
  require<ParameterError>(std::isfinite(lr) && lr > 0, "lr: must be finite and > 0, got {}", lr);
  require<ParameterError>(min_lr >= 0 && min_lr <= lr, "min-lr: must be in [0, lr {}], got {}", lr,
                          min_lr);
  not_negative("weight-decay", weight_decay);
  decay("beta1", beta1);
  decay("beta2", beta2);
  not_negative("clip", clip);
}

void LoopOptions::validate() const {
  LoopOptions(*this).visit([](const char* name, Index n, const char*) {
    require<ParameterError>(n >= 0, "{}: must be >= 0, got {}", name, n);
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
