#include "headwise/core/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace headwise {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  constexpr std::size_t kMost = 64;
  a = a.substr(0, kMost);
  b = b.substr(0, kMost);
  // Distances of the first i characters of a from the first j of b, for three values of i.
  std::vector<std::size_t> before, last(b.size() + 1), now(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({replaced, last[j] + 1, now[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before = last;
    last = now;
  }
  return last[b.size()];
}

std::vector<std::string> nearest(std::string_view name, std::span<const std::string> known,
                                 std::size_t most) {
  std::vector<std::pair<std::size_t, std::size_t>> order;  // distance, place in `known`
  for (std::size_t i = 0; i < known.size(); ++i)
    order.emplace_back(edit_distance(name, known[i]), i);
  std::sort(order.begin(), order.end());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(most, order.size()); ++i)
    names.push_back(known[order[i].second]);
  return names;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> known) {
  const std::vector<std::string> found = nearest(name, known, 1);
  if (found.empty() || 3 * edit_distance(name, found[0]) > name.size()) return "";
  return fmt::format("; did you mean '{}'?", found[0]);
}

}  // namespace headwise
