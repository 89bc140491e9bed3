// Dropout of a run of elements, for the op and for attention's pattern.
#pragma once

#include <algorithm>

#include "headwise/core/random.hpp"

namespace headwise::kernels {

/// y = x with each element zero with probability `rate` and the others scaled by 1/(1-rate); y may
/// be x. Element i goes by draw i counted from block `first` (of four draws) of the stream, so that
/// it does not matter who drops what, or how often.
template <Real T>
void drop(const Rng& rng, std::uint64_t first, double rate, const T* x, T* y, Index n) {
  const auto limit = static_cast<std::uint64_t>(rate * 0x1p32);
  const T scale = static_cast<T>(1 / (1 - rate));
  for (Index i = 0; i < n; i += 4) {
    const auto draws = rng.four(first + static_cast<std::uint64_t>(i / 4));
    for (Index j = i; j < std::min(i + 4, n); ++j)
      y[j] = draws[static_cast<std::size_t>(j - i)] < limit ? T(0) : x[j] * scale;
  }
}

}  // namespace headwise::kernels
