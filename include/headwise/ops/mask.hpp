// Which keys a query may look at. The type says what a mask means: there is no bare bool.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "headwise/core/function_ref.hpp"
#include "headwise/core/shape.hpp"

namespace headwise {

/// A mask of attention(). Make one with causal(), everything(), allow() or block().
struct Mask {
  bool causal = false;
  Index queries = 0, keys = 0;                               ///< of `allowed`
  std::shared_ptr<const std::vector<std::uint8_t>> allowed;  ///< (T,S), 1: may look; null: all
};

/// Each query sees the keys up to its own position. With fewer queries than keys the queries are
/// the last positions (cached decoding): query t sees the keys 0 .. t + S - T.
Mask causal();
/// Each query sees every key.
Mask everything();
/// Query t sees key s where may_look(t, s). A query that sees nothing gives zeros.
Mask allow(Index queries, Index keys, FunctionRef<bool(Index query, Index key)> may_look);
/// Query t sees key s except where must_not_look(t, s).
Mask block(Index queries, Index keys, FunctionRef<bool(Index query, Index key)> must_not_look);

}  // namespace headwise
