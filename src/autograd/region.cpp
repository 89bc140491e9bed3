#include "autograd/region.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "autograd/axes.hpp"

namespace headwise {
namespace {

using Places = std::array<std::set<Index>, Shape::kMaxRank>;

std::string axis_name(const Shape& shape, Index axis) {
  const Index from_end = shape.rank() - axis;
  if (shape.rank() == 1) return "element";
  if (from_end == 1) return "column";
  if (from_end == 2) return "row";
  if (from_end == 3) return shape.rank() == 3 ? "sequence" : "head";
  return axis == 0 ? "sequence" : fmt::format("axis {} place", axis);
}

/// "row 3 of 5", "rows 3 to 4 of 5 (the last 2)", "rows 0, 2 of 5".
std::string along_axis(const std::string& name, const std::set<Index>& at, Index size) {
  const Index first = *at.begin(), last = *at.rbegin(), count = static_cast<Index>(at.size());
  const bool whole = last - first + 1 == count;
  if (count == 1)
    return fmt::format("{} {} of {}{}", name, first, size, first + 1 == size ? " (the last)" : "");
  if (whole)
    return fmt::format("{}s {} to {} of {}{}", name, first, last, size,
                       last + 1 == size ? fmt::format(" (the last {})", count) : "");
  constexpr std::size_t kFew = 6;
  std::vector<Index> few(at.begin(), at.end());
  const bool more = few.size() > kFew;
  if (more) few.resize(kFew);
  return fmt::format("{}s {}{} of {}", name, fmt::join(few, ", "), more ? ", ..." : "", size);
}

/// The heads of which these are all the columns (or rows), or "" when they are not.
std::string as_heads(const std::set<Index>& at, Index size, Index heads) {
  if (heads < 2 || size % heads != 0 || size == heads) return "";
  const Index width = size / heads;
  std::set<Index> found;
  for (const Index i : at) found.insert(i / width);
  if (static_cast<Index>(found.size()) * width != static_cast<Index>(at.size())) return "";
  return along_axis("head", found, heads);
}

}  // namespace

std::string describe_region(const Shape& shape, const std::vector<Mark>& marks, Index heads) {
  Places places;
  Index wrong = 0, right = 0;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    right += marks[i] == Mark::right;
    if (marks[i] != Mark::wrong) continue;
    ++wrong;
    for (Index axis = 0; axis < shape.rank(); ++axis)
      places[static_cast<std::size_t>(axis)].insert(
          index_along(shape, axis, static_cast<Index>(i)));
  }
  if (wrong == 0) return "nothing";
  if (right == 0) return "everything";

  bool box = true;
  for (std::size_t i = 0; i < marks.size() && box; ++i) {
    if (marks[i] != Mark::right) continue;
    bool inside = true;
    for (Index axis = 0; axis < shape.rank(); ++axis)
      inside = inside && places[static_cast<std::size_t>(axis)].contains(
                             index_along(shape, axis, static_cast<Index>(i)));
    box = !inside;
  }
  if (!box) {
    std::set<Index> at;
    for (std::size_t i = 0; i < marks.size(); ++i)
      if (marks[i] == Mark::wrong) at.insert(static_cast<Index>(i));
    return fmt::format("{} of {} elements: {}", wrong, shape.size(),
                       along_axis("element", at, shape.size()));
  }
  std::vector<std::string> parts;
  for (Index axis = 0; axis < shape.rank(); ++axis) {
    const std::set<Index>& at = places[static_cast<std::size_t>(axis)];
    const Index size = shape[axis];
    if (static_cast<Index>(at.size()) == size) continue;
    const std::string text = along_axis(axis_name(shape, axis), at, size);
    const std::string head = as_heads(at, size, heads);
    parts.push_back(head.empty() ? text : fmt::format("{} ({})", head, text));
  }
  return parts.empty() ? "everything" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace headwise
