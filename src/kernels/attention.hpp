// The loops of attention: one head of one sequence at a time, in blocks of query rows against all
// the keys they may see. Whole rows, so no online softmax, and one block of memory a thread.
#pragma once

#include <cstdint>
#include <optional>

#include "headwise/core/random.hpp"
#include "headwise/core/tensor.hpp"
#include "kernels/kernels.hpp"

namespace headwise::kernels {

/// Which keys a query sees: the first visible(t), of which `allow` (T,S), if given, strikes some.
struct KeyMask {
  bool causal = false;
  const std::uint8_t* allow = nullptr;  ///< 1: may look, 0: may not
};

/// Everything that does not change from head to head.
template <Real T>
struct AttentionPlan {
  Index batch, queries, keys;
  Index heads, kv_heads;
  Index d, dv;  ///< width of a head in q and k, and in v
  T scale;
  KeyMask mask{};
  double dropout = 0;  ///< of the pattern; needs `random`
  std::optional<Rng> random{};

  /// How many of the first keys query t may see at most. The last query sees all.
  [[nodiscard]] Index visible(Index t) const {
    if (!mask.causal) return keys;
    const Index n = t + 1 + keys - queries;
    return n < 0 ? 0 : n;
  }
};

/// y = softmax(scale q k^T, masked) v.   q (B,T,H d), k (B,S,K d), v (B,S,K dv), y (B,T,H dv) with
/// K kv_heads. stats (B,H,T), unless null, is what attention_backward needs.
template <Real T>
void attention(const AttentionPlan<T>& plan, const T* q, const T* k, const T* v, T* y,
               RowStats<T>* stats);

/// The two halves of attention(), by the same blocks and so with the same bits: the whole pattern
/// p (B,H,T,S), before dropout, and y from it.
template <Real T>
void attention_pattern(const AttentionPlan<T>& plan, const T* q, const T* k, T* p,
                       RowStats<T>* stats);
template <Real T>
void attention_apply(const AttentionPlan<T>& plan, const T* p, const T* v, T* y);

/// Gradients of attention(). The pattern is computed again from q, k and stats.
/// dq is written whole; dk and dv are added to.
template <Real T>
void attention_backward(const AttentionPlan<T>& plan, const T* q, const T* k, const T* v,
                        const RowStats<T>* stats, const T* dy, T* dq, T* dk, T* dv);
/// Gradient of attention_apply() with respect to v, added to dv.
template <Real T>
void attention_apply_backward(const AttentionPlan<T>& plan, const T* p, const T* dy, T* dv);

}  // namespace headwise::kernels
