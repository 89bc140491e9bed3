// Patterns weighted by the size of what is moved.
#pragma once

#include "headwise/nn/modules.hpp"

namespace headwise::study {

/// |f_h(x_j)|, f_h(x) = (x W_V + b_V) W_O of head h: how much there is to move at each position
/// (Kobayashi et al. 2020, EMNLP, arXiv:2004.10102). What query i gets from key j has the size
/// A[i,j] |f_h(x_j)|, the norm-weighted pattern.
/// v (B,T,C): the activation "v" of that attention, with its bias; result (B,H,T), in double.
/// Throws ShapeError when C is not the attention's.
template <Real T>
Tensor<double> value_norms(const MultiHeadAttention<T>& attn, const Tensor<T>& v);

/// |sum_h A_h[i,j] f_h(x_j)|, the size of what all heads of a layer together move from key j to
/// query i.   pattern (B,H,T,S), v (B,S,C), result (B,T,S), in double. Throws
/// ShapeError when they do not fit.
template <Real T>
Tensor<double> combined_norms(const MultiHeadAttention<T>& attn, const Tensor<T>& pattern,
                              const Tensor<T>& v);

}  // namespace headwise::study
