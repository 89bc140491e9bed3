#include "kernels/attention.hpp"

#include <algorithm>
#include <cmath>

#include "headwise/core/gemm.hpp"
#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"

namespace headwise {
namespace {

/// Elements of a head's pattern up to which it is kept for the backward; a larger one is computed
/// again, with the same bits. Measured: keeping saves a seventh of the products, and costs memory.
constexpr Index kKeptElements = 64 * 64;

/// The mask, as the kernels ask it: of each query.
std::vector<kernels::SeenKeys> seen_keys(const Mask& mask, Index queries, Index keys) {
  std::vector<kernels::SeenKeys> seen(static_cast<std::size_t>(queries));
  for (Index t = 0; t < queries; ++t) {
    kernels::SeenKeys& row = seen[static_cast<std::size_t>(t)];
    row.end = mask.causal ? std::max<Index>(0, t + 1 + keys - queries) : keys;
    if (mask.allowed == nullptr) continue;
    const std::uint8_t* allow = mask.allowed->data() + t * keys;
    row.first = std::find(allow, allow + row.end, 1) - allow;
    while (row.end > row.first && allow[row.end - 1] == 0) --row.end;
    if (std::find(allow + row.first, allow + row.end, 0) != allow + row.end) row.allow = allow;
  }
  return seen;
}

/// Checks the shapes and says what the kernels need to know.
template <Real T>
kernels::AttentionPlan<T> plan_of(const Var<T>& q, const Var<T>& k, const Var<T>& v,
                                  const Attend<T>& how) {
  const Shape &sq = q.shape(), &sk = k.shape(), &sv = v.shape();
  const Index heads = how.heads, kv_heads = how.kv_heads == 0 ? heads : how.kv_heads;
  require(heads > 0 && kv_heads > 0 && heads % kv_heads == 0,
          "attention: {} heads cannot share {} heads of keys and values", heads, kv_heads);
  require(sq.rank() == 3 && sk.rank() == 3 && sv.rank() == 3 && sq[0] == sk[0] && sq[0] == sv[0] &&
              sk[1] == sv[1],
          "attention: q {}, k {} and v {} do not fit (B,T,C), (B,S,C'), (B,S,C'')", sq, sk, sv);
  require(sq[2] > 0 && sq[2] % heads == 0,
          "attention: q {} is not (B,T,C) with C a multiple of {} heads", sq, heads);
  require(sk[2] == sq[2] / heads * kv_heads,
          "attention: k {} is not (B,S,C') with C' {} heads of q's width {}", sk, kv_heads,
          sq[2] / heads);
  require(sv[2] > 0 && sv[2] % kv_heads == 0,
          "attention: v {} is not (B,S,C'') with C'' a multiple of {} heads", sv, kv_heads);
  const Mask& mask = how.mask;
  require(mask.allowed == nullptr || (mask.queries == sq[1] && mask.keys == sk[1]),
          "attention: the mask is for {} queries and {} keys, q is {} and k is {}", mask.queries,
          mask.keys, sq, sk);
  require<UsageError>(how.dropout >= 0 && how.dropout < 1, "attention: dropout {} is not in [0, 1)",
                      how.dropout);

  kernels::AttentionPlan<T> plan{.batch = sq[0],
                                 .queries = sq[1],
                                 .keys = sk[1],
                                 .heads = heads,
                                 .kv_heads = kv_heads,
                                 .d = sq[2] / heads,
                                 .dv = sv[2] / kv_heads,
                                 .scale = how.scale};
  if (plan.scale == 0) plan.scale = static_cast<T>(1 / std::sqrt(static_cast<double>(plan.d)));
  plan.seen = seen_keys(mask, plan.queries, plan.keys);
  plan.cut();
  if (how.dropout > 0 && how.random != nullptr) {
    plan.dropout = how.dropout;
    const Index draws = plan.batch * plan.heads * plan.queries * ((plan.keys + 3) / 4) * 4;
    plan.random = how.random->reserve(static_cast<std::uint64_t>(draws));
  }
  return plan;
}

/// Whether a pattern gives weight to a key that the mask does not show: only a replaced one can.
template <Real T>
bool reaches_beyond(const kernels::AttentionPlan<T>& plan, const Tensor<T>& pattern) {
  const auto weighs = [](T weight) { return weight != 0; };
  const T* row = pattern.data();
  for (Index i = 0; i < plan.batch * plan.heads * plan.queries; ++i, row += plan.keys) {
    const kernels::SeenKeys& seen = plan.seen[static_cast<std::size_t>(i % plan.queries)];
    if (std::any_of(row, row + seen.first, weighs) ||
        std::any_of(row + seen.end, row + plan.keys, weighs))
      return true;
  }
  return false;
}

/// Backward when the pattern was replaced: it is a constant, and only v gets a gradient.
template <Real T>
Backward<T> backward_of_v(const kernels::AttentionPlan<T>& plan, const Mask& mask,
                          Tensor<T> pattern, const Shape& shape) {
  return [plan, allowed = mask.allowed, pattern = std::move(pattern), shape](const Tensor<T>& dy,
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
  auto plan = plan_of(q, k, v, how);
  const Index heads = plan.batch * plan.heads;
  Tensor<T> y = Tensor<T>::uninitialized({plan.batch, plan.queries, plan.heads * plan.dv}), kept;
  std::vector<kernels::RowStats<T>> stats;
  if (q.tracked() || k.tracked() || v.tracked()) {
    stats.resize(static_cast<std::size_t>(heads * plan.queries));
    if (how.tap == nullptr && plan.kept_size() <= kKeptElements)
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
    if (replaced && reaches_beyond(plan, pattern)) {  // used as it is
      plan.seen = seen_keys(everything(), plan.queries, plan.keys);
      plan.cut();
    }
    kernels::attention_apply(plan, std::as_const(pattern).data(), v.value().data(), y.data());
    if (replaced)
      return record("attention", std::move(y), {q, k, v},
                    backward_of_v(plan, how.mask, std::move(pattern), v.shape()));
  }
  const double flops = product_flops(heads * plan.pairs(), plan.d, 1) +
                       product_flops(heads * plan.pairs(), plan.dv, 1);
  return record(
      "attention", std::move(y), {q, k, v},
      [plan, q = q.value(), k = k.value(), v = v.value(), kept = std::move(kept),
       stats = std::move(stats),
       allowed = how.mask.allowed](const Tensor<T>& dy, Grads<T>& d) mutable {
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
  return {"attention",
          {op_case("causal", self, any, with(2, 0, causal())),
           op_case("everything", self, any, with(2, 0, everything())),
           op_case("allow, one row empty", self, any, with(2, 0, holes)),
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
