// A run's model, in the precision it was trained in.
#pragma once

#include <fmt/format.h>

#include "headwise/train/run.hpp"

namespace headwise::cli {

/// Warns of weights that are not finite, by name.
inline void warn_not_finite(const Run& run, const std::vector<std::string>& names) {
  if (!names.empty())
    fmt::print(stderr, "warning: {}: not all weights are finite: {}\n", run.model(),
               fmt::join(names, ", "));
}

/// Calls f with the model of a run, after a warning about weights that are not finite.
template <class F>
int with_model(const Run& run, F f) {
  const auto load = [&]<Real T>(T) {
    std::vector<std::string> not_finite;
    const Decoder<T> model = load_model<T>(run, not_finite);
    warn_not_finite(run, not_finite);
    return f(model);
  };
  return run.config().dtype == Dtype::f64 ? load(0.0) : load(0.0F);
}

}  // namespace headwise::cli
