#include "headwise/study/composition.hpp"

#include <algorithm>
#include <cmath>

#include "headwise/core/gemm.hpp"
#include "headwise/core/parallel.hpp"
#include "study/folded.hpp"

namespace headwise::study {
namespace {

/// <a, b>, element by element.
double dot(const double* a, const double* b, Index n) {
  double sum = 0;
  for (Index i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

double root(double square) { return std::sqrt(std::max(0.0, square)); }

/// The (D,D) products of each head's factors with themselves, from which all norms follow:
/// W_Q W_Q^T, W_K W_K^T, W_V W_V^T and W_O^T W_O.
class Grams {
 public:
  explicit Grams(const FoldedAttention& layer) : d_(layer.q.shape()[0] / layer.heads) {
    for (Tensor<double>* all : {&q_, &k_, &v_, &o_})
      *all = Tensor<double>::uninitialized({layer.heads * d_, d_});
    double *q = q_.data(), *k = k_.data(), *v = v_.data(), *o = o_.data();
    parallel_for(layer.heads, 1, [&](Index h, Index) {
      square(layer.q_of(h), q + h * d_ * d_);
      square(layer.k_of(h), k + h * d_ * d_);
      square(layer.v_of(h), v + h * d_ * d_);
      square(layer.o_of(h).t(), o + h * d_ * d_);
    });
  }
  [[nodiscard]] const double* q(Index h) const { return q_.data() + h * d_ * d_; }
  [[nodiscard]] const double* k(Index h) const { return k_.data() + h * d_ * d_; }
  [[nodiscard]] const double* v(Index h) const { return v_.data() + h * d_ * d_; }
  [[nodiscard]] const double* o(Index h) const { return o_.data() + h * d_ * d_; }
  /// |W_QK|^2 = tr(W_K W_K^T W_Q W_Q^T) and |W_OV|^2 = tr(W_O^T W_O W_V W_V^T).
  [[nodiscard]] double qk_norm(Index h) const { return root(dot(q(h), k(h), d_ * d_)); }
  [[nodiscard]] double ov_norm(Index h) const { return root(dot(o(h), v(h), d_ * d_)); }

 private:
  void square(Mat<const double> m, double* to) const {
    gemm_tile<double>(1, m, m.t(), 0, {to, d_, d_, d_});
  }
  Index d_;
  Tensor<double> q_, k_, v_, o_;
};

/// |L M R| from L^T L and R R^T: the square is tr(L^T L M R R^T M^T) = <L^T L M, M R R^T>.
double norm_of_product(const double* left, Mat<const double> m, const double* right) {
  const Index d = m.rows;
  std::vector<double> lm(static_cast<std::size_t>(d * d)), mr(lm.size());
  gemm_tile<double>(1, {left, d, d, d}, m, 0, {lm.data(), d, d, d});
  gemm_tile<double>(1, m, {right, d, d, d}, 0, {mr.data(), d, d, d});
  return root(dot(lm.data(), mr.data(), d * d));
}

/// All heads of two layers. What the later one reads of the earlier one's W_O is one product.
void compose(Index from, Index to, const std::vector<FoldedAttention>& layers,
             const std::vector<Grams>& grams, std::vector<Composition>& all) {
  const auto at = [](const auto& list, Index i) -> auto& {
    return list[static_cast<std::size_t>(i)];
  };
  const FoldedAttention &first = at(layers, from), &second = at(layers, to);
  const Grams &written = at(grams, from), &read = at(grams, to);
  const Index heads = first.heads, c = first.o.shape()[0], d = c / heads;

  Tensor<double> q = Tensor<double>::uninitialized({c, c}), k = q, v = q;
  Products<double> work;
  work.add(1, as_rows(second.q), as_rows(first.o), 0, as_rows(q));
  work.add(1, as_rows(second.k), as_rows(first.o), 0, as_rows(k));
  work.add(1, as_rows(second.v), as_rows(first.o), 0, as_rows(v));
  work.run();

  std::vector<Composition> pairs(static_cast<std::size_t>(heads * heads));
  parallel_for(heads * heads, 1, [&](Index pair, Index) {
    const Index h = pair / heads, g = pair % heads;  // of the earlier and of the later layer
    const auto between = [&](const Tensor<double>& m) {
      return as_rows(m).block(g * d, h * d, d, d);
    };
    const double wrote = written.ov_norm(h), qk = read.qk_norm(g) * wrote,
                 ov = read.ov_norm(g) * wrote;
    const auto ratio = [](double norm, double by) { return by > 0 ? norm / by : 0; };
    pairs[static_cast<std::size_t>(pair)] = {
        {from, h},
        {to, g},
        ratio(norm_of_product(read.k(g), between(q), written.v(h)), qk),
        ratio(norm_of_product(read.q(g), between(k), written.v(h)), qk),
        ratio(norm_of_product(read.o(g), between(v), written.v(h)), ov)};
  });
  all.insert(all.end(), pairs.begin(), pairs.end());
}

}  // namespace

template <Real T>
std::vector<Composition> composition(const Decoder<T>& model) {
  const std::vector<FoldedAttention> layers = folded(model.blocks);
  const std::vector<Grams> grams(layers.begin(), layers.end());
  std::vector<Composition> all;
  for (Index from = 0; from < model.config.layers; ++from)
    for (Index to = from + 1; to < model.config.layers; ++to) compose(from, to, layers, grams, all);
  std::stable_sort(all.begin(), all.end(),
                   [](const Composition& a, const Composition& b) { return a.from < b.from; });
  return all;
}

double composition_baseline(Index width) { return 1 / std::sqrt(static_cast<double>(width)); }

template std::vector<Composition> composition(const Decoder<float>&);
template std::vector<Composition> composition(const Decoder<double>&);

}  // namespace headwise::study
