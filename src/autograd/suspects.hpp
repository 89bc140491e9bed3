// Records whose own backward may be wrong, found by few forward passes.
#pragma once

#include <vector>

#include "autograd/replay.hpp"

namespace headwise {

struct Suspect {
  Index record;
  bool sure;  ///< no kink, rounding or edge explains the difference
};

/// Records, in order, whose slope along one random direction is not what their backward says: all
/// values move at once, each record alone.
template <Real T>
std::vector<Suspect> suspects(const Subject<T>& subject, const Seen<T>& seen,
                              const GradReport& report, std::uint64_t seed);

}  // namespace headwise
