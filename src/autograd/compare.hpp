// Every leaf and parameter of a forward pass, compared with finite differences.
#pragma once

#include "autograd/audit.hpp"
#include "autograd/budget.hpp"

namespace headwise {

/// Appends a check of each to the report, with its step and tolerance, and returns their places.
template <Real T>
std::vector<Index> compare(const Subject<T>& subject, const Seen<T>& seen, const Audit<T>& audit,
                           const GradOptions& options, Budget& budget, GradReport& report);

}  // namespace headwise
