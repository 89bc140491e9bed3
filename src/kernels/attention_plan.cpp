// What the mask says to the loops of attention: rows of scores, and the blocks that follow from it.
#include <algorithm>

#include "kernels/attention.hpp"

namespace headwise::kernels {
namespace {

/// Measured: short contexts gain from skipping more of the masked half, long ones from fat
/// products.
Index block_rows(Index queries) {
  return queries <= 128 ? 32 : queries <= 512 ? 48 : queries < 2048 ? 64 : 128;
}

/// Asks the mask about blocks of query rows.
std::vector<Block> cut(const std::vector<SeenKeys>& seen, Index queries, Index keys) {
  const Index step = block_rows(queries);
  std::vector<Block> blocks;
  Index at = 0;
  for (Index begin = 0; begin < queries; begin += step) {
    Block b{.begin = begin, .end = std::min(begin + step, queries), .at = at};
    Index first = keys, last = 0;
    for (Index t = b.begin; t < b.end; ++t) {
      const SeenKeys& row = seen[static_cast<std::size_t>(t)];
      if (row.count() == 0) continue;
      first = std::min(first, row.first);
      last = std::max(last, row.end);
    }
    b.last = last;
    b.first = last == 0 ? 0 : first / 16 * 16;  // whole vectors, and whole blocks of random draws
    at += b.rows() * b.keys();
    blocks.push_back(b);
  }
  return blocks;
}

Index count_allowed(const SeenKeys& row) {
  return row.allow == nullptr ? row.count()
                              : std::count_if(row.allow + row.first, row.allow + row.end,
                                              [](std::uint8_t may_look) { return may_look != 0; });
}

}  // namespace

template <Real T>
void mask_row(const SeenKeys& seen, const double* bias, T* row) {
  if (bias != nullptr)
    for (Index s = seen.first; s < seen.end; ++s) {
      T& score = row[s - seen.first];
      score = static_cast<T>(bias[s]) + (bias[s] == kStruck ? T(0) : score);  // which may be NaN
    }
  if (seen.allow != nullptr)
    for (Index s = seen.first; s < seen.end; ++s)
      if (seen.allow[s] == 0) row[s - seen.first] = static_cast<T>(kStruck);
}

template <Real T>
void strike(const SeenKeys& seen, const double* bias, T* row) {
  if (bias == nullptr && seen.allow == nullptr) return;
  for (Index s = seen.first; s < seen.end; ++s)
    if ((bias != nullptr && bias[s] == kStruck) || (seen.allow != nullptr && seen.allow[s] == 0))
      row[s - seen.first] = 0;
}

template <Real T>
void AttentionPlan<T>::show(std::vector<std::vector<SeenKeys>> seen) {
  views.clear();
  for (std::vector<SeenKeys>& each : seen) {
    std::vector<Block> blocks = cut(each, queries, keys);
    views.push_back({std::move(each), std::move(blocks)});
  }
}

template <Real T>
Index AttentionPlan<T>::kept_size() const {
  Index most = 0;
  for (const View& view : views)
    if (!view.blocks.empty()) {
      const Block& last = view.blocks.back();
      most = std::max(most, last.at + last.rows() * last.keys());
    }
  return most;
}

template <Real T>
Index AttentionPlan<T>::pairs() const {
  Index count = 0;
  for (const View& view : views)
    for (const SeenKeys& row : view.seen) count += count_allowed(row);
  return views.size() == 1 ? batch * count : count;
}

#define HEADWISE_INSTANTIATE(T)                               \
  template struct AttentionPlan<T>;                           \
  template void mask_row(const SeenKeys&, const double*, T*); \
  template void strike(const SeenKeys&, const double*, T*);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise::kernels
