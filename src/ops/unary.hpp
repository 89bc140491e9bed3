// Elementwise functions of one tensor: what their op files leave to say is f and its derivative.
#pragma once

#include <string_view>

#include "headwise/core/parallel.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/broadcast.hpp"

namespace headwise {

/// f(x), element by element.
template <Real T, class F>
Tensor<T> map_elements(const Tensor<T>& x, F f) {
  Tensor<T> y = Tensor<T>::uninitialized(x.shape());
  const T* in = x.data();
  T* out = y.data();
  parallel_rows(x.size(), 1, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) out[i] = f(in[i]);
  });
  return y;
}

/// What a derivative is computed from, and so which tensor the tape saves.
enum class From { input, result };

/// y = f(x), element by element, recorded as `op`; slope(x) or slope(y) is dy/dx.
template <From from, Real T, class F, class Slope>
Var<T> unary(std::string_view op, const Var<T>& x, F f, Slope slope) {
  require(!x.absent(), "{}: there is no input", op);
  Tensor<T> y = map_elements(x.value(), f);
  Tensor<T> saved = from == From::input ? x.value() : y;
  return record(
      op, std::move(y), {x}, [saved = std::move(saved), slope](const Tensor<T>& dy, Grads<T>& d) {
        d.add(0, broadcast("backward", dy, saved, [&](T up, T v) { return up * slope(v); }));
      });
}

}  // namespace headwise
