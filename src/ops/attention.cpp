#include <algorithm>
#include <array>
#include <limits>

#include "headwise/core/gemm.hpp"
#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/attention_plan.hpp"

namespace headwise {
namespace {

/// Elements of a head's pattern up to which it is kept for the backward; a larger one is computed
/// again, with the same bits. Measured: keeping saves a seventh of the products, and costs memory.
constexpr Index kKeptPattern = 64 * 64;

/// Whether a pattern gives weight to a key that the mask does not show: only a replaced one can.
template <Real T>
bool reaches_beyond(const kernels::AttentionPlan<T>& plan, const Tensor<T>& pattern) {
  const auto weighs = [](T weight) { return weight != 0; };
  const T* row = pattern.data();
  for (Index b = 0; b < plan.batch; ++b)
    for (Index i = 0; i < plan.heads * plan.queries; ++i, row += plan.keys) {
      const kernels::SeenKeys& seen = plan.view(b).seen[static_cast<std::size_t>(i % plan.queries)];
      if (std::any_of(row, row + seen.first, weighs) ||
          std::any_of(row + seen.end, row + plan.keys, weighs))
        return true;
    }
  return false;
}

/// Backward when the pattern was replaced: it is a constant, and only v gets a gradient.
template <Real T>
Backward<T> backward_of_v(kernels::AttentionPlan<T> plan, const Mask& mask, Tensor<T> pattern,
                          const Shape& shape) {
  return [plan = std::move(plan), mask, pattern = std::move(pattern), shape](const Tensor<T>& dy,
                                                                             Grads<T>& d) {
    if (!d.wants(2)) return;
    Tensor<T> dv = Tensor<T>::uninitialized(shape);
    kernels::attention_apply_backward(plan, pattern.data(), dy.data(), dv.data());
    d.add(2, std::move(dv));
  };
}

/// Backward with the pattern of the forward: kept, or computed again from the rows' statistics.
template <Real T>
void backward(const kernels::AttentionPlan<T>& plan, const Tensor<T>& q, const Tensor<T>& k,
              const Tensor<T>& v, Tensor<T>& kept, std::vector<kernels::RowStats<T>>& stats,
              const Tensor<T>& dy, Grads<T>& d) {
  std::array<Tensor<T>, 3> dx;
  const std::array<const Tensor<T>*, 3> x = {&q, &k, &v};
  for (std::size_t i = 0; i < 3; ++i)
    if (d.wants(static_cast<Index>(i))) dx[i] = Tensor<T>::uninitialized(x[i]->shape());
  kernels::attention_backward(plan, q.data(), k.data(), v.data(), {kept.data(), stats.data()},
                              dy.data(), dx[0].data(), dx[1].data(), dx[2].data());
  for (std::size_t i = 0; i < 3; ++i)
    if (!dx[i].empty()) d.add(static_cast<Index>(i), std::move(dx[i]));
}

}  // namespace

template <Real T>
Var<T> attention(const Var<T>& q, const Var<T>& k, const Var<T>& v, const Attend<T>& how) {
  Mask mask;
  auto plan = plan_of(q, k, v, how, mask);
  const Index heads = plan.batch * plan.heads;
  Tensor<T> y = Tensor<T>::uninitialized({plan.batch, plan.queries, plan.heads * plan.dv}), kept;
  std::vector<kernels::RowStats<T>> stats;
  if (q.tracked() || k.tracked() || v.tracked()) {
    stats.resize(static_cast<std::size_t>(heads * plan.queries));
    if (how.tap == nullptr && plan.kept_size() <= kKeptPattern)
      kept = Tensor<T>::uninitialized({heads, plan.kept_size()});
  }
  if (how.tap == nullptr) {
    kernels::attention(plan, q.value().data(), k.value().data(), v.value().data(), y.data(),
                       {kept.data(), stats.empty() ? nullptr : stats.data()});
  } else {
    auto pattern = Tensor<T>::uninitialized({plan.batch, plan.heads, plan.queries, plan.keys});
    const Shape shape = pattern.shape();
    kernels::attention_pattern(plan, q.value().data(), k.value().data(), pattern.data(),
                               stats.empty() ? nullptr : stats.data());
    // The copy makes a write show: it moves the pattern to storage of its own.
    const Tensor<T> before = pattern;
    const bool replaced = how.tap->see(pattern) || !pattern.shares(before);
    require(!pattern.empty() && pattern.shape() == shape,
            "attention: the replaced pattern {} must have shape {}", pattern.shape(), shape);
    plan.replaced = replaced;
    if (replaced && reaches_beyond(plan, pattern)) {  // used as it is
      plan.show(seen_keys(everything(), {.queries = plan.queries, .keys = plan.keys}));
    }
    kernels::attention_apply(plan, std::as_const(pattern).data(), v.value().data(), y.data());
    if (replaced)
      return record("attention", std::move(y), {q, k, v},
                    backward_of_v(std::move(plan), mask, std::move(pattern), v.shape()));
  }
  const Index pairs = plan.heads * plan.pairs();
  const double flops = product_flops(pairs, plan.d, 1) + product_flops(pairs, plan.dv, 1);
  return record(
      "attention", std::move(y), {q, k, v},
      [plan = std::move(plan), mask, q = q.value(), k = k.value(), v = v.value(),
       kept = std::move(kept), stats = std::move(stats)](const Tensor<T>& dy, Grads<T>& d) mutable {
        backward(plan, q, k, v, kept, stats, dy, d);
      },
      Flops::of_products(flops));
}

template Var<float> attention(const Var<float>&, const Var<float>&, const Var<float>&,
                              const Attend<float>&);
template Var<double> attention(const Var<double>&, const Var<double>&, const Var<double>&,
                               const Attend<double>&);

OpSpec specs::attention() {
  const auto with = [](Index heads, Index kv_heads, const Mask& mask, double dropout = 0) {
    return [=]<class V>(const std::vector<V>& x) {
      using T = std::remove_cvref_t<decltype(x[0].item())>;
      Rng rng(5);
      Attend<T> how{.heads = heads, .kv_heads = kv_heads, .mask = mask, .dropout = dropout};
      how.random = &rng;
      return headwise::attention(x[0], x[1], x[2], how);
    };
  };
  const std::vector<Shape> self = {{2, 5, 4}, {2, 5, 4}, {2, 5, 6}};
  const Mask holes = allow(5, 5, [](Index t, Index s) { return t != 2 && (t + s) % 3 != 0; });
  Tensor<double> table = Tensor<double>::zeros({2, 5, 5});  // a bias for each head, with holes
  double* out = table.data();
  for (Index i = 0; i < table.size(); ++i)
    out[i] = i % 7 == 3 ? -std::numeric_limits<double>::infinity() : -0.1 * static_cast<double>(i);
  return {"attention",
          {op_case("causal", self, any, with(2, 0, causal())),
           op_case("everything", self, any, with(2, 0, everything())),
           op_case("allow, one row empty", self, any, with(2, 0, holes)),
           op_case("causal, offset 2", self, any, with(2, 0, causal(2))),
           op_case("lengths", self, any, with(2, 0, keys_below({3, 0}))),
           op_case("bias of each head", self, any, with(2, 0, bias(table))),
           op_case("all at once", {{2, 5, 4}, {2, 5, 2}, {2, 5, 3}}, any,
                   with(2, 1, causal() & keys_below({5, 3}) & holes & bias(table), 0.3)),
           op_case("fewer queries than keys", {{2, 3, 4}, {2, 5, 4}, {2, 5, 4}}, any,
                   with(2, 0, causal())),
           op_case("more queries than keys", {{1, 5, 4}, {1, 3, 4}, {1, 3, 4}}, any,
                   with(2, 0, causal())),
           op_case("two blocks of rows", {{1, 35, 2}, {1, 35, 2}, {1, 35, 2}}, any,
                   with(1, 0, causal())),
           op_case("shared keys and values", {{1, 4, 8}, {1, 4, 4}, {1, 4, 4}}, any,
                   with(4, 2, causal())),
           op_case("dropout 0.3", self, any, with(2, 0, causal(), 0.3))}};
}

}  // namespace headwise
