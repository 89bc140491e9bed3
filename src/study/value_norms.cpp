#include "headwise/study/value_norms.hpp"

#include <algorithm>
#include <cmath>

#include "headwise/core/gemm.hpp"
#include "headwise/core/parallel.hpp"
#include "study/folded.hpp"

namespace headwise::study {
namespace {

/// What the heads of a layer move from each position of one sequence: f_h(x_j), (H,T,C).
class Moved {
 public:
  template <Real T>
  Moved(const MultiHeadAttention<T>& attn, const Tensor<T>& v)
      : heads_(attn.heads),
        c_(v.shape()[2]),
        o_(in_double(attn.w_o.weight.value)),
        v_(in_double(v)) {}

  /// f_h(x_j) of sequence b into `to` (T,C).
  void of(Index b, Index h, Index time, double* to) const {
    const Index d = c_ / heads_;
    gemm_tile<double>(1, as_rows(v_).block(b * time, h * d, time, d),
                      as_rows(o_).block(0, h * d, c_, d).t(), 0, {to, time, c_, c_});
  }

 private:
  Index heads_, c_;
  Tensor<double> o_, v_;
};

double dot(const double* a, const double* b, Index n) {
  double sum = 0;
  for (Index i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

template <Real T>
void require_values(const char* where, const MultiHeadAttention<T>& attn, const Tensor<T>& v) {
  const Index c = attn.w_o.weight.value.shape()[0];
  require(v.shape().rank() == 3 && v.shape()[2] == c, "{}: values {} are not (B,T,{})", where,
          v.shape(), c);
}

}  // namespace

template <Real T>
Tensor<double> value_norms(const MultiHeadAttention<T>& attn, const Tensor<T>& v) {
  require_values("value_norms", attn, v);
  const Index batch = v.shape()[0], time = v.shape()[1], c = v.shape()[2], heads = attn.heads;
  const Moved moved(attn, v);
  Tensor<double> norms = Tensor<double>::uninitialized({batch, heads, time});
  double* out = norms.data();
  parallel_for(batch * heads, 1, [&](Index at, Index) {
    std::vector<double> f(static_cast<std::size_t>(time * c));
    moved.of(at / heads, at % heads, time, f.data());
    for (Index j = 0; j < time; ++j) {
      const double* row = f.data() + j * c;
      out[at * time + j] = std::sqrt(dot(row, row, c));
    }
  });
  return norms;
}

template <Real T>
Tensor<double> combined_norms(const MultiHeadAttention<T>& attn, const Tensor<T>& pattern,
                              const Tensor<T>& v) {
  require_values("combined_norms", attn, v);
  const Index batch = v.shape()[0], keys = v.shape()[1], c = v.shape()[2], heads = attn.heads;
  require(pattern.shape().rank() == 4 &&
              pattern.shape() == Shape{batch, heads, pattern.shape()[2], keys},
          "combined_norms: a pattern {} is not ({},{},T,{})", pattern.shape(), batch, heads, keys);
  const Index time = pattern.shape()[2];
  const Moved moved(attn, v);
  Tensor<double> norms = Tensor<double>::uninitialized({batch, time, keys});
  double* out = norms.data();
  parallel_for(batch, 1, [&](Index b, Index) {
    std::vector<double> f(static_cast<std::size_t>(heads * keys * c)), products;
    for (Index h = 0; h < heads; ++h) moved.of(b, h, keys, f.data() + h * keys * c);
    for (Index j = 0; j < keys; ++j)  // <f_g(x_j), f_h(x_j)>, (T,H,H)
      for (Index g = 0; g < heads; ++g)
        for (Index h = 0; h < heads; ++h)
          products.push_back(dot(f.data() + (g * keys + j) * c, f.data() + (h * keys + j) * c, c));
    const T* a = pattern.data() + b * heads * time * keys;
    for (Index i = 0; i < time; ++i)
      for (Index j = 0; j < keys; ++j) {
        const auto weight = [&](Index h) {
          return static_cast<double>(a[(h * time + i) * keys + j]);
        };
        const double* product = products.data() + j * heads * heads;
        double square = 0;
        for (Index g = 0; g < heads; ++g)
          for (Index h = 0; h < heads; ++h) square += weight(g) * weight(h) * *product++;
        out[(b * time + i) * keys + j] = std::sqrt(std::max(0.0, square));
      }
  });
  return norms;
}

#define HEADWISE_NORMS(T)                                                                \
  template Tensor<double> value_norms(const MultiHeadAttention<T>&, const Tensor<T>&);   \
  template Tensor<double> combined_norms(const MultiHeadAttention<T>&, const Tensor<T>&, \
                                         const Tensor<T>&);
HEADWISE_NORMS(float)
HEADWISE_NORMS(double)
#undef HEADWISE_NORMS

}  // namespace headwise::study
