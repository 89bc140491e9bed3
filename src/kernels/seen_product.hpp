// A matrix product of which each row of the result takes some rows of the second factor only.
#pragma once

#include <algorithm>
#include <vector>

#include "headwise/core/function_ref.hpp"
#include "headwise/core/gemm.hpp"
#include "kernels/kernels.hpp"

namespace headwise::kernels {

/// c = alpha a b + beta c for an a that is 0 where row i does not see row k of b. What is not seen
/// has no effect, even where it is not finite and 0 times it would be NaN: the bits are those with
/// zeros there. Slow: for when the plain product is not finite. b and c are not transposed.
template <Real T>
void product_of_seen(T alpha, Mat<const T> a, Mat<const T> b, T beta, Mat<T> c,
                     FunctionRef<bool(Index i, Index k)> sees) {
  // As far apart as in b: BLAS takes another way for rows that touch, with other last bits.
  std::vector<T> finite(static_cast<std::size_t>(b.rows * b.ld));
  std::vector<Index> odd;
  for (Index k = 0; k < b.rows; ++k) {
    const Mat<const T> row = b.block(k, 0, 1, b.cols);
    if (all_finite(row))
      std::copy_n(row.data, b.cols, finite.data() + k * b.ld);
    else
      odd.push_back(k);
  }
  gemm_tile<T>(alpha, a, Mat<const T>{finite.data(), b.rows, b.cols, b.ld}, beta, c);
  for (Index i = 0; i < c.rows; ++i)
    for (const Index k : odd) {
      if (!sees(i, k)) continue;
      const T weight = alpha * *a.block(i, k, 1, 1).data;
      for (Index j = 0; j < c.cols; ++j) c.data[i * c.ld + j] += weight * b.data[k * b.ld + j];
    }
}

}  // namespace headwise::kernels
