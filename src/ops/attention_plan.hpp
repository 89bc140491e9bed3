// From the arguments of attention() to what its kernels need to know.
#pragma once

#include <cmath>

#include "headwise/ops/ops.hpp"
#include "kernels/attention.hpp"
#include "ops/mask_view.hpp"

namespace headwise {

/// The mask asked for. The default of causal() says which keys a query sees where both stand at the
/// same positions.
inline Mask mask_of(const std::optional<Mask>& asked, Index queries, Index keys) {
  require(asked.has_value() || queries == keys,
          "attention: {} queries and {} keys need a mask: causal(), everything() or another",
          queries, keys);
  return asked ? *asked : causal();
}

/// Checks the shapes and says what the kernels need to know. The plan points into the tables of
/// `mask`, which becomes the one in use.
template <Real T>
kernels::AttentionPlan<T> plan_of(const Var<T>& q, const Var<T>& k, const Var<T>& v,
                                  const Attend<T>& how, Mask& mask) {
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
  const MaskedSizes sizes{sq[0], heads, sq[1], sk[1]};
  mask = mask_of(how.mask, sizes.queries, sizes.keys);
  check_mask("attention", mask, sizes);
  require<UsageError>(std::isfinite(how.scale), "attention: scale {} is not finite", how.scale);
  require<UsageError>(how.dropout >= 0 && how.dropout < 1,
                      "attention: dropout must be in [0, 1), got {}", how.dropout);

  kernels::AttentionPlan<T> plan{.batch = sq[0],
                                 .queries = sq[1],
                                 .keys = sk[1],
                                 .heads = heads,
                                 .kv_heads = kv_heads,
                                 .d = sq[2] / heads,
                                 .dv = sv[2] / kv_heads,
                                 .scale = how.scale};
  if (plan.scale == 0) plan.scale = static_cast<T>(1 / std::sqrt(static_cast<double>(plan.d)));
  plan.show(seen_keys(mask, sizes));
  plan.bias = bias_of(mask, sizes);
  if (how.dropout > 0 && how.random != nullptr) {
    plan.dropout = how.dropout;
    const Index draws = plan.batch * plan.heads * plan.queries * ((plan.keys + 3) / 4) * 4;
    plan.random = how.random->reserve(static_cast<std::uint64_t>(draws));
  }
  return plan;
}

}  // namespace headwise
