// Attention composed of the small ops is the fused one.
#include <cmath>

#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

template <Real T>
constexpr double kClose = std::same_as<T, double> ? 1e-12 : 1e-6;

/// softmax(q k^T / sqrt(D), masked) v, head by head.   q (B,T,C), k and v (B,S,C).
template <Real T>
Var<T> composed_attention(const Var<T>& q, const Var<T>& k, const Var<T>& v, Index heads,
                          const Mask& mask) {
  const Var<T> scale = Tensor<T>({}, {1 / std::sqrt(static_cast<T>(q.shape().last() / heads))});
  const Var<T> scores =
      matmul(split_heads(q, heads), transpose(split_heads(k, heads))) * scale;  // (B,H,T,S)
  return concat_heads(matmul(masked_softmax(scores, mask), split_heads(v, heads)));
}

/// Every kind of mask for two sequences, and all of them put together.
std::vector<Mask> masks(Index heads, Index t, Index s) {
  const Mask holes = allow(t, s, [](Index query, Index key) { return (query + key) % 3 != 0; });
  const Mask padded = keys_below({s, s / 2}),
             tilted = bias(random_tensor<double>({heads, t, s}, 9));
  return {causal(),
          everything(),
          causal(s / 3),
          padded,
          holes,
          tilted,
          causal() & padded & holes & tilted};
}

}  // namespace

TEMPLATE_TEST_CASE("attention composed of small ops equals the fused one",
                   "[ops][attention][composed]", float, double) {
  using T = TestType;
  struct Sizes {
    Index t, s, heads, d;
  };
  // More queries than keys, too: the first of them see nothing.
  for (const Sizes& n : {Sizes{1, 1, 1, 1}, Sizes{5, 5, 2, 3}, Sizes{3, 9, 3, 4}, Sizes{9, 3, 2, 4},
                         Sizes{70, 70, 2, 8}}) {
    CAPTURE(n.t, n.s, n.heads, n.d);
    const Index c = n.heads * n.d;
    const std::vector<Tensor<T>> inputs = {random_tensor<T>({2, n.t, c}, 1),
                                           random_tensor<T>({2, n.s, c}, 2),
                                           random_tensor<T>({2, n.s, c}, 3)};
    const Tensor<T> dy = random_tensor<T>({2, n.t, c}, 4);
    int kind = 0;
    for (const Mask& mask : masks(n.heads, n.t, n.s)) {
      CAPTURE(kind++);
      const Pass<T> fused = pass<T>(
          [&](const auto& x) {
            return attention(x[0], x[1], x[2], {.heads = n.heads, .mask = mask});
          },
          inputs, dy);
      const Pass<T> composed = pass<T>(
          [&](const auto& x) { return composed_attention(x[0], x[1], x[2], n.heads, mask); },
          inputs, dy);
      CHECK(relative_gap(composed.y, fused.y) < kClose<T>);
      double scale = 0;  // of the gradients: those of q and k are differences of larger numbers
      for (const Tensor<T>& d : fused.d) scale = std::max(scale, largest(as<double>(d)));
      for (std::size_t i = 0; i < 3; ++i) {
        INFO("input " << i);
        CHECK(relative_gap(composed.d[i], fused.d[i], scale) < kClose<T>);
      }
    }
  }
}
