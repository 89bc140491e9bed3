// A row of cross-entropy: its loss and its gradient, for the ops that have one in them.
#pragma once

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "headwise/ops/ops.hpp"
#include "kernels/kernels.hpp"

namespace headwise {

/// Whether x (..., C) has one row a label.
inline bool has_a_row_each(const Shape& x, const Ids& labels) {
  if (x.rank() < 1) return false;
  const auto rows = x.sizes().first(static_cast<std::size_t>(x.rank() - 1));
  return std::ranges::equal(rows, labels.shape.sizes());
}

/// The mean loss over `count` labels, as a scalar; 0 for none.
template <Real T>
Tensor<T> mean_loss(const std::vector<double>& loss, Index count) {
  const double total = std::accumulate(loss.begin(), loss.end(), 0.0);
  return Tensor<T>({}, {static_cast<T>(count == 0 ? 0 : total / static_cast<double>(count))});
}

/// Throws ShapeError for a label that is neither kIgnore nor one of v classes, and when there is
/// not one for each element of their shape.
inline void require_labels(std::string_view op, const Ids& labels, Index v) {
  labels.check(op);
  for (std::size_t i = 0; i < labels.values.size(); ++i) {
    const Id label = labels.values[i];
    require(label == kIgnore || (label >= 0 && label < v),
            "{}: label {} at position {} is neither in [0, {}] nor {} (ignore)", op, label, i,
            v - 1, kIgnore);
  }
}

/// -log softmax(row)[label], and log sum exp(row); a label of kIgnore: 0.
template <Real T>
double row_loss(const T* row, Index v, Id label, double& lse) {
  if (label == kIgnore) return 0;
  lse = kernels::log_sum_exp(row, v);
  return lse - static_cast<double>(row[label]);
}

/// out = scale d row_loss / d row, which may be the row itself.
template <Real T>
void row_gradient(const T* row, Index v, Id label, double lse, T scale, T* out) {
  if (label == kIgnore) {
    std::fill_n(out, v, T(0));
    return;
  }
  kernels::exp_minus(row, lse, scale, out, v);
  out[label] -= scale;
}

}  // namespace headwise
