// Tensors with their axes in another order, for the ops that have that in them.
#pragma once

#include <algorithm>
#include <vector>

#include "headwise/core/parallel.hpp"
#include "headwise/core/tensor.hpp"

namespace headwise {

/// x with its axes in another order: axis i of the result is axis order[i] of x.
template <Real T>
Tensor<T> permuted(const Tensor<T>& x, const std::vector<Index>& order) {
  if (std::is_sorted(order.begin(), order.end())) return x;
  std::vector<Index> sizes, steps;  // of the result's axes; steps in x
  for (const Index axis : order) {
    sizes.push_back(x.shape()[axis]);
    steps.push_back(1);
    for (Index i = axis + 1; i < x.shape().rank(); ++i) steps.back() *= x.shape()[i];
  }
  Tensor<T> y = Tensor<T>::uninitialized(Shape(std::span<const Index>(sizes)));
  const Index n = sizes.back(), step = steps.back();
  const T* in = x.data();
  T* out = y.data();
  parallel_rows(y.shape().rows(), n, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      Index at = 0, rest = r;
      for (std::size_t axis = sizes.size() - 1; axis-- > 0; rest /= sizes[axis])
        at += rest % sizes[axis] * steps[axis];
      for (Index i = 0; i < n; ++i) out[r * n + i] = in[at + i * step];
    }
  });
  return y;
}

/// The order that undoes `order`.
inline std::vector<Index> inverse(const std::vector<Index>& order) {
  std::vector<Index> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    back[static_cast<std::size_t>(order[i])] = static_cast<Index>(i);
  return back;
}

}  // namespace headwise
