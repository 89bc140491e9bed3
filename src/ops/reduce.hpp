// What reductions over chosen axes share: the axes to go are brought to the end, so that each
// element of the result belongs to one row.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "kernels/kernels.hpp"
#include "ops/axes.hpp"
#include "ops/permute.hpp"

namespace headwise {

class Reduction {
 public:
  /// Over all axes when none is named. With `keep` they stay in the result's shape, of size 1.
  Reduction(std::string_view op, const Shape& x, const std::vector<Index>& axes, bool keep) {
    const std::vector<Index> named = axes_of(op, x, axes);
    std::vector<Index> gone, sizes, result;
    for (Index i = 0; i < x.rank(); ++i) {
      const bool goes = named.empty() || std::find(named.begin(), named.end(), i) != named.end();
      (goes ? gone : order_).push_back(i);
      if (!goes || keep) result.push_back(goes ? 1 : x[i]);
    }
    for (const Index i : gone) n_ *= x[i];
    for (const Index i : order_) rows_ *= x[i];
    order_.insert(order_.end(), gone.begin(), gone.end());
    for (const Index i : order_) sizes.push_back(x[i]);
    seen_ = Shape(std::span<const Index>(sizes));
    result_ = Shape(std::span<const Index>(result));
  }

  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index n() const { return n_; }  ///< of a row
  [[nodiscard]] const Shape& result() const { return result_; }

  /// The rows of x, one after the other.
  template <Real T>
  Tensor<T> rows_of(const Tensor<T>& x) const {
    return permuted(x, order_);
  }
  /// The shape of those rows, and the way back from there.
  [[nodiscard]] const Shape& seen() const { return seen_; }
  template <Real T>
  Tensor<T> undo(const Tensor<T>& rows) const {
    return permuted(rows, inverse(order_));
  }

 private:
  std::vector<Index> order_;
  Index rows_ = 1, n_ = 1;
  Shape seen_, result_;
};

/// The sum of each row, taken in double and divided by `over`.
template <Real T>
Tensor<T> row_sums(const Reduction& to, const Tensor<T>& x, Index over) {
  const Tensor<T> rows = to.rows_of(x);
  Tensor<T> y = Tensor<T>::uninitialized(to.result());
  const T* in = rows.data();
  T* out = y.data();
  const Index n = to.n();
  parallel_rows(to.rows(), n, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r)
      out[r] = static_cast<T>(kernels::sum(in + r * n, n) / static_cast<double>(over));
  });
  return y;
}

/// Each element of dy, divided by `over`, at every place that row_sums() added up.
template <Real T>
Tensor<T> row_sums_backward(const Reduction& to, const Tensor<T>& dy, Index over) {
  Tensor<T> rows = Tensor<T>::uninitialized(to.seen());
  const T* up = dy.data();
  T* out = rows.data();
  const Index n = to.n();
  parallel_rows(to.rows(), n, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) std::fill_n(out + r * n, n, up[r] / static_cast<T>(over));
  });
  return to.undo(rows);
}

}  // namespace headwise
