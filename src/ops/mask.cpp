#include "headwise/ops/mask.hpp"

#include "headwise/core/error.hpp"

namespace headwise {

Mask causal() { return {.causal = true, .allowed = nullptr}; }
Mask everything() { return {}; }

Mask allow(Index queries, Index keys, FunctionRef<bool(Index query, Index key)> may_look) {
  require(queries >= 0 && keys >= 0, "mask: {} queries and {} keys", queries, keys);
  auto table = std::make_shared<std::vector<std::uint8_t>>();
  table->reserve(static_cast<std::size_t>(queries * keys));
  for (Index t = 0; t < queries; ++t)
    for (Index s = 0; s < keys; ++s) table->push_back(may_look(t, s) ? 1 : 0);
  return {false, queries, keys, std::move(table)};
}

Mask block(Index queries, Index keys, FunctionRef<bool(Index query, Index key)> must_not_look) {
  return allow(queries, keys, [&](Index t, Index s) { return !must_not_look(t, s); });
}

}  // namespace headwise
