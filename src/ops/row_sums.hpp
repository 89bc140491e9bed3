// Sums over the rows of a matrix, in parallel: gradients of biases and gains.
#pragma once

#include <algorithm>

#include "headwise/core/parallel.hpp"
#include "headwise/core/tensor.hpp"
#include "kernels/kernels.hpp"

namespace headwise {

/// Partial sums of n columns, one a block of rows. The blocks follow from the number of rows alone,
/// and are added up in order: the same bits for any number of threads.
template <Real T>
class RowSums {
 public:
  RowSums(Index rows, Index n)
      : grain_(std::max<Index>(64, (rows + 31) / 32)),
        n_(n),
        parts_(Tensor<T>::zeros({(rows + grain_ - 1) / grain_, n})),
        data_(parts_.data()) {}

  /// Rows of a block: the grain of the parallel_for that fills the parts.
  [[nodiscard]] Index grain() const { return grain_; }
  /// Where the block that begins at row `begin` adds its rows up.
  T* part(Index begin) const { return data_ + begin / grain_ * n_; }
  void add_to(Tensor<T>& sum) const {
    T* out = sum.data();
    for (Index i = 0; i < parts_.shape()[0]; ++i) kernels::add(data_ + i * n_, out, n_);
  }

 private:
  Index grain_, n_;
  Tensor<T> parts_;
  T* data_;
};

}  // namespace headwise
