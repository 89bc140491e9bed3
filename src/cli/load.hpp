// A run's model, in the precision it was trained in.
#pragma once

#include <fmt/format.h>

#include "cli/message.hpp"
#include "headwise/train/run.hpp"

namespace headwise::cli {

/// Warns of weights that are not finite, by name.
inline void warn_not_finite(const Run& run, const std::vector<std::string>& names) {
  if (!names.empty())
    print_message("warning: {}: not all weights are finite: {}\n", run.model(),
                  fmt::join(names, ", "));
}

/// What is done about weights that are not finite: a warning, or DataError.
enum class NotFinite { warn, refuse };

/// Calls f with the model of a run.
template <class F>
int with_model(const Run& run, F f, NotFinite what = NotFinite::warn) {
  const auto load = [&]<Real T>(T) {
    std::vector<std::string> not_finite;
    const Decoder<T> model = load_model<T>(run, not_finite);
    require<DataError>(what == NotFinite::warn || not_finite.empty(),
                       "{}: not all weights are finite: {}", run.model(),
                       fmt::join(not_finite, ", "));
    warn_not_finite(run, not_finite);
    return f(model);
  };
  return run.config().dtype == Dtype::f64 ? load(0.0) : load(0.0F);
}

}  // namespace headwise::cli
