#include "study/folded.hpp"

#include "headwise/core/parallel.hpp"

namespace headwise::study {

template <Real T>
Tensor<double> in_double(const Tensor<T>& table, Index begin, Index rows) {
  const Index c = table.shape().last();
  Tensor<double> y = Tensor<double>::uninitialized({rows, c});
  const T* in = table.data() + begin * c;
  double* out = y.data();
  parallel_rows(rows, c, [&](Index from, Index to) {
    for (Index i = from * c; i < to * c; ++i) out[i] = static_cast<double>(in[i]);
  });
  return y;
}

template <Real T>
Tensor<double> before_norm(Tensor<double> w, const LayerNorm<T>& norm) {
  const Index c = w.shape().last();
  const T* gain = norm.weight.value.data();
  double* out = w.data();
  parallel_rows(w.shape().rows(), c, [&](Index from, Index to) {
    for (double* row = out + from * c; row != out + to * c; row += c) {
      double mean = 0;
      for (Index i = 0; i < c; ++i) mean += row[i] *= static_cast<double>(gain[i]);
      mean /= static_cast<double>(c);
      for (Index i = 0; i < c; ++i) row[i] -= mean;
    }
  });
  return w;
}

template <Real T>
FoldedAttention::FoldedAttention(const Block<T>& block)
    : heads(block.attn.heads),
      q(before_norm(in_double(block.attn.w_q.weight.value), block.ln1)),
      k(before_norm(in_double(block.attn.w_k.weight.value), block.ln1)),
      v(before_norm(in_double(block.attn.w_v.weight.value), block.ln1)),
      o(in_double(block.attn.w_o.weight.value)) {}

#define HEADWISE_FOLDED(T)                                                  \
  template Tensor<double> in_double(const Tensor<T>&, Index, Index);        \
  template Tensor<double> before_norm(Tensor<double>, const LayerNorm<T>&); \
  template FoldedAttention::FoldedAttention(const Block<T>&);
HEADWISE_FOLDED(float)
HEADWISE_FOLDED(double)
#undef HEADWISE_FOLDED

}  // namespace headwise::study
