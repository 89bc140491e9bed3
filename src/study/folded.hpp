// The weights that read the residual stream and write to it, in double, with norms folded in.
#pragma once

#include <vector>

#include "headwise/core/mat.hpp"
#include "headwise/models/decoder.hpp"

namespace headwise::study {

/// Rows of a table in double, as many as asked for from `begin` on.   table (N,C), result (rows,C).
template <Real T>
Tensor<double> in_double(const Tensor<T>& table, Index begin, Index rows);
/// All rows.
template <Real T>
Tensor<double> in_double(const Tensor<T>& table) {
  return in_double(table, 0, table.shape().rows());
}

/// w diag(gain) P: weights w (N,C) that read a norm's result, as they read the stream before it. A
/// norm is P x / sigma * gain + bias, where P takes the mean off, so all of it is linear in x but
/// sigma, which scales a position as a whole, and the bias, which does not depend on x.
template <Real T>
Tensor<double> before_norm(Tensor<double> w, const LayerNorm<T>& norm);

/// A layer's attention: q, k and v (C,C) are w_q, w_k and w_v as they read the stream before ln1, o
/// (C,C) is w_o.
struct FoldedAttention {
  Index heads;
  Tensor<double> q, k, v, o;

  template <Real T>
  explicit FoldedAttention(const Block<T>& block);

  /// W_Q, W_K, W_V (D,C) and W_O (C,D) of a head, as Elhage et al. write them.
  [[nodiscard]] Mat<const double> q_of(Index h) const { return of(as_rows(q), h); }
  [[nodiscard]] Mat<const double> k_of(Index h) const { return of(as_rows(k), h); }
  [[nodiscard]] Mat<const double> v_of(Index h) const { return of(as_rows(v), h); }
  [[nodiscard]] Mat<const double> o_of(Index h) const { return of(as_rows(o).t(), h).t(); }

 private:
  [[nodiscard]] Mat<const double> of(Mat<const double> m, Index h) const {
    const Index d = m.rows / heads;
    return m.block(h * d, 0, d, m.cols);
  }
};

template <Real T>
std::vector<FoldedAttention> folded(const std::vector<Block<T>>& blocks) {
  return {blocks.begin(), blocks.end()};
}

/// The matrix that the tokens' logits are read with: (V,C).
template <Real T>
const Tensor<T>& output_table(const Decoder<T>& model) {
  return model.head ? model.head->weight.value : model.tok.weight.value;
}

}  // namespace headwise::study
