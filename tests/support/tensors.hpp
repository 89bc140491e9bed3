// Tensors for tests, and how far two of them are apart.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "headwise/core/random.hpp"
#include "headwise/core/tensor.hpp"

namespace headwise::test {

/// Standard normal numbers, always the same for a seed.
template <Real T>
Tensor<T> random_tensor(const Shape& shape, std::uint64_t seed) {
  Rng rng(seed);
  Tensor<T> x = Tensor<T>::uninitialized(shape);
  T* out = x.data();
  for (Index i = 0; i < x.size(); ++i) out[i] = static_cast<T>(rng.normal());
  return x;
}

/// max |x|; infinite when a value is not finite.
inline double largest(const Tensor<double>& x) {
  double most = 0;
  for (const double v : x.values())
    most = std::isfinite(v) ? std::max(most, std::fabs(v)) : HUGE_VAL;
  return most;
}

/// max |a - b| / max |b|; infinite when the shapes differ or a value is not a number.
template <Real T, Real U>
double relative_gap(const Tensor<T>& a, const Tensor<U>& b, double scale = 0) {
  if (a.empty() || b.empty() || a.shape() != b.shape())
    return std::numeric_limits<double>::infinity();
  double gap = 0;
  for (Index i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a.data()[i]), y = static_cast<double>(b.data()[i]);
    if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<double>::infinity();
    gap = std::max(gap, std::fabs(x - y));
    scale = std::max(scale, std::fabs(y));
  }
  return gap == 0 ? 0 : gap / scale;
}

/// Whether two tensors have the same shape and the same bits.
template <Real T>
bool same_bits(const Tensor<T>& a, const Tensor<T>& b) {
  return a.shape() == b.shape() &&
         std::equal(a.values().begin(), a.values().end(), b.values().begin(), [](T x, T y) {
           return x == y ? std::signbit(x) == std::signbit(y) : std::isnan(x) && std::isnan(y);
         });
}

}  // namespace headwise::test
