// The one strided thing: a 2-D window handed to GEMM. A head is such a window into a (B,T,C)
// tensor.
#pragma once

#include "headwise/core/tensor.hpp"

namespace headwise {

/// A window of rows x cols. Element (i,j) is data[i*ld + j], or data[j*ld + i] when transposed.
/// T may be const. Owns nothing.
template <class T>
struct Mat {
  T* data = nullptr;
  Index rows = 0, cols = 0;
  Index ld = 0;  ///< elements from one stored row to the next
  bool transposed = false;

  [[nodiscard]] Mat t() const { return {data, cols, rows, ld, !transposed}; }
  /// The block of m x n elements that starts at (i,j).
  [[nodiscard]] Mat block(Index i, Index j, Index m, Index n) const {
    return {transposed ? data + j * ld + i : data + i * ld + j, m, n, ld, transposed};
  }
  operator Mat<const T>() const  // NOLINT(google-explicit-constructor): as T* to const T*
      requires(!std::is_const_v<T>) {
    return {data, rows, cols, ld, transposed};
  }
};

/// x (..., C) as the matrix (N,C) of its rows.
template <Real T>
Mat<const T> as_rows(const Tensor<T>& x) {
  return {x.data(), x.shape().rows(), x.shape().last(), x.shape().last()};
}
template <Real T>
Mat<T> as_rows(Tensor<T>& x) {
  return {x.data(), x.shape().rows(), x.shape().last(), x.shape().last()};
}

}  // namespace headwise
