// Why a check failed.
#pragma once

#include "autograd/audit.hpp"
#include "autograd/budget.hpp"

namespace headwise {

/// The worst element again with other steps, the first wrong record of the tape, and the kind of
/// mistake. `places` are those of the report's tensors.
template <Real T>
Diagnosis diagnose(const Subject<T>& subject, const Seen<T>& seen, const GradReport& report,
                   const std::vector<Index>& places, const GradOptions& options,
                   const Budget& budget);

}  // namespace headwise
