// gelu() of a whole tensor, for the ops that have one in them.
#pragma once

#include "headwise/core/parallel.hpp"
#include "headwise/ops/ops.hpp"
#include "kernels/kernels.hpp"

namespace headwise {

template <Real T>
auto gelu_kernel(Gelu kind) {
  return kind == Gelu::exact ? kernels::gelu_exact<T> : kernels::gelu_tanh<T>;
}

/// y = gelu(x) and, unless slope is empty, slope = dy/dx.
template <Real T>
void gelu_of(Gelu kind, const Tensor<T>& x, Tensor<T>& y, Tensor<T>& slope) {
  const auto kernel = gelu_kernel<T>(kind);
  const T* in = x.data();
  T *out = y.data(), *dydx = slope.data();
  parallel_rows(x.size(), 1, [&](Index begin, Index end) {
    kernel(in + begin, out + begin, dydx == nullptr ? nullptr : dydx + begin, end - begin);
  });
}

}  // namespace headwise
