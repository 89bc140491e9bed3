// Attention and its gradients as the formulas say, with plain loops in double: what the fused op
// is compared with.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "headwise/core/function_ref.hpp"
#include "headwise/core/tensor.hpp"

namespace headwise::test {

/// Sizes of an attention, with heads and key heads.
struct PlainSizes {
  Index b, t, s;
  Index heads, kv_heads;
  Index d, dv;
  double scale;
};

struct PlainAttention {
  Tensor<double> pattern;     ///< (B,H,T,S)
  Tensor<double> y;           ///< (B,T,H dv)
  Tensor<double> dq, dk, dv;  ///< of sum(dy y)
};

/// What a mask adds to the score of a query and a key: -inf where the query may not look.
using Added = FunctionRef<double(Index b, Index h, Index t, Index s)>;
constexpr double kUnseen = -std::numeric_limits<double>::infinity();

/// What dropout multiplies entry i of the pattern by, given all factors (B,H,T,S) or none.
inline double factor(const Tensor<double>& factors, Index i) {
  return factors.empty() ? 1 : factors.data()[i];
}

/// y = (p factors) v for a pattern given (B,H,T,S), and the gradient with respect to v.
inline void plain_apply(const PlainSizes& n, const double* v, const double* dy, PlainAttention& out,
                        const Tensor<double>& factors = {}) {
  out.y = Tensor<double>::zeros({n.b, n.t, n.heads * n.dv});
  out.dv = Tensor<double>::zeros({n.b, n.s, n.kv_heads * n.dv});
  const double* p = std::as_const(out.pattern).data();
  double *y = out.y.data(), *dv = out.dv.data();
  Index i = 0;
  for (Index b = 0; b < n.b; ++b)
    for (Index h = 0; h < n.heads; ++h)
      for (Index t = 0; t < n.t; ++t)
        for (Index s = 0; s < n.s; ++s, ++i)
          for (Index c = 0; c < n.dv; ++c) {
            const double weight = p[i] * factor(factors, i);
            const Index to = (b * n.t + t) * n.heads * n.dv + h * n.dv + c;
            const Index from =
                (b * n.s + s) * n.kv_heads * n.dv + h / (n.heads / n.kv_heads) * n.dv + c;
            y[to] += weight * v[from];
            dv[from] += weight * dy[to];
          }
}

/// Everything, from q (B,T,H d), k (B,S,K d), v (B,S,K dv) and dy (B,T,H dv).
inline PlainAttention plain_attention(const PlainSizes& n, const Tensor<double>& q,
                                      const Tensor<double>& k, const Tensor<double>& v,
                                      const Tensor<double>& dy, Added added,
                                      const Tensor<double>& factors = {}) {
  PlainAttention out;
  out.pattern = Tensor<double>::zeros({n.b, n.heads, n.t, n.s});
  out.dq = Tensor<double>::zeros(q.shape());
  out.dk = Tensor<double>::zeros(k.shape());
  double *dq = out.dq.data(), *dk = out.dk.data(), *p = out.pattern.data();
  std::vector<double> dp(static_cast<std::size_t>(n.s));
  Index row = 0;  // of the pattern
  for (Index b = 0; b < n.b; ++b)
    for (Index h = 0; h < n.heads; ++h) {
      const Index kv = h / (n.heads / n.kv_heads);
      for (Index t = 0; t < n.t; ++t, ++row, p += n.s) {
        const Index at_q = (b * n.t + t) * n.heads * n.d + h * n.d;
        const double* up = dy.data() + (b * n.t + t) * n.heads * n.dv + h * n.dv;
        double most = kUnseen, sum = 0, inner = 0;
        for (Index s = 0; s < n.s; ++s) {
          const double* key = k.data() + (b * n.s + s) * n.kv_heads * n.d + kv * n.d;
          double score = 0;
          for (Index c = 0; c < n.d; ++c) score += q.data()[at_q + c] * key[c];
          p[s] = n.scale * score + added(b, h, t, s);
          most = std::max(most, p[s]);
        }
        for (Index s = 0; s < n.s; ++s) sum += p[s] = p[s] == kUnseen ? 0 : std::exp(p[s] - most);
        for (Index s = 0; s < n.s; ++s) {
          if (sum > 0) p[s] /= sum;
          const double* value = v.data() + (b * n.s + s) * n.kv_heads * n.dv + kv * n.dv;
          double& g = dp[static_cast<std::size_t>(s)] = 0;
          for (Index c = 0; c < n.dv; ++c) g += up[c] * value[c];
          g *= factor(factors, row * n.s + s);
          inner += p[s] * g;
        }
        for (Index s = 0; s < n.s; ++s) {
          const double ds = n.scale * p[s] * (dp[static_cast<std::size_t>(s)] - inner);
          const Index at_k = (b * n.s + s) * n.kv_heads * n.d + kv * n.d;
          for (Index c = 0; c < n.d; ++c) {
            dq[at_q + c] += ds * k.data()[at_k + c];
            dk[at_k + c] += ds * q.data()[at_q + c];
          }
        }
      }
    }
  plain_apply(n, v.data(), dy.data(), out, factors);
  return out;
}

}  // namespace headwise::test
