// The loops of attention: one head of one sequence at a time, in blocks of query rows against all
// the keys they may see. Whole rows, so no online softmax, and one block of memory a thread.
//
// What a query does not see has no effect on it, nor it on that key's gradients, NaN and infinities
// included. A product over a block multiplies it by a weight of 0: where the result is not finite,
// it is made again of what is seen (seen_product.hpp), so looking at results is all that this
// costs.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "headwise/core/random.hpp"
#include "headwise/core/tensor.hpp"
#include "kernels/kernels.hpp"

namespace headwise::kernels {

/// The bias that strikes a key.
inline constexpr double kStruck = -std::numeric_limits<double>::infinity();

/// The keys that a query may see: [first, end), of which `allow` (S), unless null, strikes some.
struct SeenKeys {
  Index first = 0, end = 0;
  const std::uint8_t* allow = nullptr;  ///< 1: may look, 0: may not
  [[nodiscard]] Index count() const { return end - first; }
};

/// Query rows [begin, end) and the keys [first, last) that any of them sees: the others are
/// skipped.
struct Block {
  Index begin = 0, end = 0;
  Index first = 0, last = 0;
  Index at = 0;  ///< where its part of a head's kept pattern starts

  [[nodiscard]] Index rows() const { return end - begin; }
  [[nodiscard]] Index keys() const { return last - first; }
};

/// The mask of one sequence: what each of its queries sees, and the blocks that follow from it.
struct View {
  std::vector<SeenKeys> seen{};
  std::vector<Block> blocks{};
};

/// What is added to the scores (T,S) of each head of each sequence; -inf strikes a key.
struct Bias {
  const double* table = nullptr;           ///< null: nothing
  Index each_sequence = 0, each_head = 0;  ///< how far apart theirs are; 0: they share one

  /// The row (S) of query t, or null.
  [[nodiscard]] const double* row(Index b, Index h, Index t, Index keys) const {
    return table == nullptr ? table : table + b * each_sequence + h * each_head + t * keys;
  }
};

/// Puts the mask on a row of scores, from its first seen key on: -inf where a key is struck, by
/// `allow` or `bias` (S, null: none), else the bias is added.
template <Real T>
void mask_row(const SeenKeys& seen, const double* bias, T* row);
/// Zeroes a row where mask_row() puts -inf.
template <Real T>
void strike(const SeenKeys& seen, const double* bias, T* row);

/// What does not change from head to head.
template <Real T>
struct AttentionPlan {
  Index batch = 0, queries = 0, keys = 0;
  Index heads = 1, kv_heads = 1;
  Index d = 0, dv = 0;  ///< width of a head in q and k, and in v
  T scale = 1;
  std::vector<View> views{};  ///< one for all sequences, or one for each: see show()
  Bias bias{};
  bool replaced = false;  ///< the pattern to apply is somebody's own: what it gives no weight is
                          ///< not seen, whatever the mask says
  double dropout = 0;     ///< of the pattern; needs `random`
  std::optional<Rng> random{};

  /// Takes what the queries see, in all sequences or in each, and cuts it into blocks of query
  /// rows. Needs queries and keys.
  void show(std::vector<std::vector<SeenKeys>> seen);
  [[nodiscard]] const View& view(Index b) const {
    return views[views.size() == 1 ? 0 : static_cast<std::size_t>(b)];
  }
  [[nodiscard]] Index kept_size() const;  ///< elements that any head's kept pattern fits in
  /// How many pairs of query and key see each other, in one head of every sequence.
  [[nodiscard]] Index pairs() const;
};

/// The blocks of every head's pattern as attention() leaves them for attention_backward(), or null:
/// then that computes them again from `stats`, with the same bits.
template <Real T>
struct Saved {
  T* kept = nullptr;             ///< (B, H, plan.kept_size())
  RowStats<T>* stats = nullptr;  ///< (B,H,T)
};

/// y = softmax(scale q k^T, masked) v.   q (B,T,H d), k (B,S,K d), v (B,S,K dv), y (B,T,H dv) with
/// K kv_heads.
template <Real T>
void attention(const AttentionPlan<T>& plan, const T* q, const T* k, const T* v, T* y,
               const Saved<T>& saved);

/// The two halves of attention(), by the same blocks and so with the same bits: the whole pattern
/// p (B,H,T,S), before dropout, and y from it.
template <Real T>
void attention_pattern(const AttentionPlan<T>& plan, const T* q, const T* k, T* p,
                       RowStats<T>* stats);
template <Real T>
void attention_apply(const AttentionPlan<T>& plan, const T* p, const T* v, T* y);

/// Gradients of attention(), written whole; null where nobody wants one.
template <Real T>
void attention_backward(const AttentionPlan<T>& plan, const T* q, const T* k, const T* v,
                        const Saved<T>& saved, const T* dy, T* dq, T* dk, T* dv);
/// Gradient of attention_apply() with respect to v, written whole.
template <Real T>
void attention_apply_backward(const AttentionPlan<T>& plan, const T* p, const T* dy, T* dv);

}  // namespace headwise::kernels
