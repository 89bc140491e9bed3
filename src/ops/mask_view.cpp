#include "ops/mask_view.hpp"

#include <algorithm>
#include <array>

#include "headwise/core/error.hpp"

namespace headwise {
namespace {

/// What the queries of a sequence with `length` keys see.
std::vector<kernels::SeenKeys> seen_keys(const Mask& mask, const MaskedSizes& sizes, Index length) {
  std::vector<kernels::SeenKeys> seen(static_cast<std::size_t>(sizes.queries));
  for (Index t = 0; t < sizes.queries; ++t) {
    kernels::SeenKeys& row = seen[static_cast<std::size_t>(t)];
    // From the key at the query's own position on, how many more: t + 1 + offset may be too large.
    Index more = length - (t + 1);
    if (mask.causal) more = std::min(more, sizes.keys - sizes.queries);
    if (mask.offset) more = std::min(more, *mask.offset);
    row.end = std::max<Index>(0, t + 1 + more);
    if (mask.table == nullptr) continue;
    const std::uint8_t* allow = mask.table->allowed.data() + t * sizes.keys;
    row.first = std::find(allow, allow + row.end, 1) - allow;
    while (row.end > row.first && allow[row.end - 1] == 0) --row.end;
    if (std::find(allow + row.first, allow + row.end, 0) != allow + row.end) row.allow = allow;
  }
  return seen;
}

}  // namespace

void check_mask(std::string_view op, const Mask& mask, const MaskedSizes& n) {
  if (mask.table != nullptr) {
    require(mask.table->queries == n.queries && mask.table->keys == n.keys,
            "{}: the mask is for {} queries and {} keys, not {} and {}", op, mask.table->queries,
            mask.table->keys, n.queries, n.keys);
    require(std::ssize(mask.table->allowed) == n.queries * n.keys,
            "{}: the mask's table has {} entries for {} queries and {} keys", op,
            mask.table->allowed.size(), n.queries, n.keys);
  }
  if (mask.lengths != nullptr) {
    const std::vector<Index>& lengths = *mask.lengths;
    require(std::ssize(lengths) == n.batch, "{}: the mask has lengths of {} sequences, not {}", op,
            lengths.size(), n.batch);
    for (std::size_t b = 0; b < lengths.size(); ++b)
      require(lengths[b] >= 0 && lengths[b] <= n.keys,
              "{}: length {} of sequence {} is not in [0, {}]", op, lengths[b], b, n.keys);
  }
  if (!mask.bias.empty()) {
    const std::array<Index, 4> whole = {n.batch, n.heads, n.queries, n.keys};
    const auto have = mask.bias.shape().sizes();
    require(have.size() >= 2 && have.size() <= 4 &&
                std::equal(have.rbegin(), have.rend(), whole.rbegin()),
            "{}: the mask's bias {} does not fit scores ({},{},{},{})", op, mask.bias.shape(),
            n.batch, n.heads, n.queries, n.keys);
  }
}

std::vector<std::vector<kernels::SeenKeys>> seen_keys(const Mask& mask, const MaskedSizes& n) {
  std::vector<std::vector<kernels::SeenKeys>> seen;
  if (mask.lengths == nullptr)
    seen.push_back(seen_keys(mask, n, n.keys));
  else
    for (const Index length : *mask.lengths) seen.push_back(seen_keys(mask, n, length));
  return seen;
}

kernels::Bias bias_of(const Mask& mask, const MaskedSizes& n) {
  const Index rank = mask.bias.empty() ? 0 : mask.bias.shape().rank(), head = n.queries * n.keys;
  return {.table = mask.bias.data(),
          .each_sequence = rank == 4 ? n.heads * head : 0,
          .each_head = rank >= 3 ? head : 0};
}

}  // namespace headwise
