// A run's model, in the precision it was trained in.
#pragma once

#include <fmt/format.h>

#include "headwise/train/run.hpp"

namespace headwise::cli {

/// Calls f with the model of a run, after a warning about weights that are not finite.
template <class F>
int with_model(const Run& run, F f) {
  const auto load = [&]<Real T>(T) {
    std::vector<std::string> not_finite;
    const Decoder<T> model = load_model<T>(run, not_finite);
    if (!not_finite.empty())
      fmt::print(stderr, "warning: {}: not all weights are finite: {}\n", run.model(),
                 fmt::join(not_finite, ", "));
    return f(model);
  };
  return run.config().dtype == Dtype::f64 ? load(0.0) : load(0.0F);
}

}  // namespace headwise::cli
