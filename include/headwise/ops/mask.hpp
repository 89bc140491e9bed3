// Which keys a query may look at, and what is added to its scores. The names say what a mask
// means: there is no bare bool. Masks put together with & let a query see what all of them do:
//   causal() & keys_below({5, 3}) & bias(slopes)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "headwise/core/function_ref.hpp"
#include "headwise/core/tensor.hpp"

namespace headwise {

/// A mask of attention() and masked_softmax(). Make one with the functions below. A query that sees
/// nothing gives zeros. Attention skips what a block of queries does not see.
struct Mask {
  Mask() = default;  ///< everything(); no aggregate, so that nothing else (a bool) makes one

  struct Table {
    Index queries = 0, keys = 0;
    std::vector<std::uint8_t> allowed;  ///< (T,S), 1: may look
  };
  bool causal = false;                                ///< see causal()
  std::optional<Index> offset;                        ///< see causal(offset)
  std::shared_ptr<const std::vector<Index>> lengths;  ///< (B), see keys_below(); null: all keys
  std::shared_ptr<const Table> table;                 ///< see allow(); null: all keys
  Tensor<double> bias;                                ///< see bias(); empty: none
};

/// Each query sees the keys up to its own position. With fewer queries than keys the queries are
/// the last positions (cached decoding): query t sees the keys 0 .. t + S - T.
Mask causal();
/// Query t stands at position t + offset and sees the keys 0 .. t + offset, as far as there are
/// any. Throws ShapeError for a negative offset.
Mask causal(Index offset);
/// Each query sees every key.
Mask everything();
/// Sequence b has lengths[b] keys, and the rest is padding: its queries see the keys s <
/// lengths[b]. One length in [0, S] for each of the B sequences, else the op throws ShapeError.
Mask keys_below(std::vector<Index> lengths);
/// Query t sees key s where may_look(t, s), in every sequence.
Mask allow(Index queries, Index keys, FunctionRef<bool(Index query, Index key)> may_look);
/// Query t sees key s except where must_not_look(t, s), in every sequence.
Mask block(Index queries, Index keys, FunctionRef<bool(Index query, Index key)> must_not_look);
/// Adds the table, a constant, to the scaled scores: the same for all heads (T,S), for each head
/// (H,T,S), as the slopes of ALiBi (Press et al. 2022, arXiv:2108.12409, sec. 3), or for each head
/// of each sequence (B,H,T,S). A query does not see a key where it is -inf. Throws ShapeError for
/// another rank, and for a number that is neither -inf nor in the range of float.
Mask bias(Tensor<double> table);

/// A query sees a key where both masks let it; biases add up, the leading axes that one has not
/// repeated. Throws ShapeError when two tables, or two lists of lengths, differ in size.
Mask operator&(const Mask& a, const Mask& b);

}  // namespace headwise
