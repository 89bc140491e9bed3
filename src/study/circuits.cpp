#include "headwise/study/circuits.hpp"

#include <algorithm>

#include "headwise/core/eigenvalues.hpp"
#include "headwise/core/gemm.hpp"
#include "headwise/core/parallel.hpp"
#include "study/folded.hpp"

namespace headwise::study {
namespace {

/// Rows of a token table that are converted to double at a time.
constexpr Index kRows = 1024;

/// a^T b for tables (V,C): (C,C) in double.
template <Real T>
Tensor<double> over_tokens(const Tensor<T>& a, const Tensor<T>& b) {
  const Index v = a.shape()[0], c = a.shape()[1];
  Tensor<double> sum = Tensor<double>::zeros({c, c});
  for (Index i = 0; i < v; i += kRows) {
    const Index rows = std::min(kRows, v - i);
    const Tensor<double> left = in_double(a, i, rows);
    const Tensor<double> right = b.shares(a) ? left : in_double(b, i, rows);
    gemm<double>(1, as_rows(left).t(), as_rows(right), 1, as_rows(sum));
  }
  return sum;
}

/// Eigenvalues of left m right.   left (D,C), m (C,C), right (C,D).
std::vector<std::complex<double>> eigenvalues_between(Mat<const double> left,
                                                      const Tensor<double>& m,
                                                      Mat<const double> right) {
  const Index d = left.rows, c = left.cols;
  Tensor<double> lm = Tensor<double>::uninitialized({d, c});
  Tensor<double> product = Tensor<double>::uninitialized({d, d});
  gemm_tile<double>(1, left, as_rows(m), 0, as_rows(lm));
  gemm_tile<double>(1, as_rows(std::as_const(lm)), right, 0, as_rows(product));
  return eigenvalues(as_rows(std::as_const(product)));
}

}  // namespace

double positivity(std::span<const std::complex<double>> eigenvalues) {
  double sum = 0, size = 0;
  for (const std::complex<double>& value : eigenvalues)
    sum += value.real(), size += std::abs(value);
  return size == 0 ? 0 : sum / size;
}

template <Real T>
std::vector<Circuits> circuits(const Decoder<T>& model) {
  const Tensor<T>&embedding = model.tok.weight.value, &output = output_table(model);
  const Tensor<double> keys = over_tokens(embedding, embedding);  // W_E W_E^T
  const Tensor<double> copies =                                   // W_E W_U
      before_norm(output.shares(embedding) ? keys : over_tokens(embedding, output), model.ln_f);
  std::vector<Circuits> all;
  for (const HeadId head : heads_of(model.config)) all.push_back({head, {}, {}});
  for (Index layer = 0; layer < model.config.layers; ++layer) {
    const FoldedAttention attn(model.blocks[static_cast<std::size_t>(layer)]);
    parallel_for(attn.heads, 1, [&](Index h, Index) {
      Circuits& of = all[static_cast<std::size_t>(layer * attn.heads + h)];
      of.ov = eigenvalues_between(attn.v_of(h), copies, attn.o_of(h));
      of.qk = eigenvalues_between(attn.k_of(h), keys, attn.q_of(h).t());
    });
  }
  return all;
}

template std::vector<Circuits> circuits(const Decoder<float>&);
template std::vector<Circuits> circuits(const Decoder<double>&);

}  // namespace headwise::study
