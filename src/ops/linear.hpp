// What ops with a linear layer in them share: its shapes, its bias and that one's gradient.
#pragma once

#include <string_view>

#include "headwise/core/gemm.hpp"
#include "headwise/core/tensor.hpp"
#include "kernels/kernels.hpp"
#include "ops/row_sums.hpp"

namespace headwise {

/// Throws ShapeError unless x (..., C), w (O,C) and, if there is one, b (O) fit.
inline void require_linear(std::string_view op, const Shape& x, const Shape& w, const Shape& b,
                           bool no_bias) {
  const bool fits = x.rank() >= 1 && w.rank() == 2 && x.last() == w[1];
  if (no_bias)
    require(fits, "{}: input {} and weight {} do not fit (..., C), (O,C)", op, x, w);
  else
    require(fits && b == Shape{w[0]},
            "{}: input {}, weight {} and bias {} do not fit (..., C), (O,C), (O)", op, x, w, b);
}

/// Adds b (O) to the rows of each tile; nothing when there is no b. b must stay alive.
template <Real T>
Finish<T> add_bias(const Tensor<T>& b) {
  return [bias = b.data()](Index, Index j, Mat<T> tile) {
    if (bias == nullptr) return;
    for (Index r = 0; r < tile.rows; ++r)
      kernels::add(bias + j, tile.data + r * tile.ld, tile.cols);
  };
}

/// y = x w^T + b for x (N,C), w (O,C), y (N,O) and, if there is one, b (O). The bits of up to
/// kernels::kFewRows rows do not depend on how many there are: a sample does not change with those
/// that are drawn beside it.
template <Real T>
void times_weight(Mat<const T> x, const Tensor<T>& w, const Tensor<T>& b, Mat<T> y) {
  const Mat<const T> weight = as_rows(w);
  const Finish<T> finish = add_bias(b);
  if (x.rows > kernels::kFewRows) return gemm<T>(1, x, weight.t(), 0, y, finish);
  constexpr Index kWeights = 64;  // whole groups of the kernel's, long enough to read at full speed
  parallel_for(weight.rows, kWeights, [&](Index begin, Index end) {
    const Mat<T> some = y.block(0, begin, y.rows, end - begin);
    kernels::few_rows<T>(x, weight.block(begin, 0, end - begin, weight.cols), some);
    finish(0, begin, some);
  });
}

/// Adds the sum of dy's rows to db.
template <Real T>
void add_row_sums(const Tensor<T>& dy, Tensor<T>& db) {
  const Index rows = dy.shape().rows(), o = dy.shape().last();
  const T* in = dy.data();
  const RowSums<T> sums(rows, o);
  parallel_for(rows, sums.grain(), [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) kernels::add(in + r * o, sums.part(begin), o);
  });
  sums.add_to(db);
}

}  // namespace headwise
