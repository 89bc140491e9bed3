// From the arguments of attention() to what its kernels need to know.
#pragma once

#include <algorithm>
#include <cmath>

#include "headwise/ops/ops.hpp"
#include "kernels/attention.hpp"

namespace headwise {

/// The mask, as the kernels ask it: of each query.
inline std::vector<kernels::SeenKeys> seen_keys(const Mask& mask, Index queries, Index keys) {
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

}  // namespace headwise
