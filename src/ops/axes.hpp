// Axes of a shape, and the runs of memory that an axis cuts a tensor into.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "headwise/core/parallel.hpp"
#include "headwise/core/tensor.hpp"

namespace headwise {

/// The axis counted from 0; a negative one counts from the end. Throws ShapeError when x has no
/// such axis; `op` begins the message.
inline Index axis_of(std::string_view op, const Shape& x, Index axis) {
  require(axis >= -x.rank() && axis < x.rank(), "{}: {} has no axis {}", op, x, axis);
  return axis < 0 ? axis + x.rank() : axis;
}

/// The same for several. Throws ShapeError when one is named twice, too.
inline std::vector<Index> axes_of(std::string_view op, const Shape& x, std::vector<Index> axes) {
  for (auto axis = axes.begin(); axis != axes.end(); ++axis) {
    const Index given = *axis;
    *axis = axis_of(op, x, given);
    require(std::find(axes.begin(), axis, *axis) == axis, "{}: axis {} of {} is named twice", op,
            given, x);
  }
  return axes;
}

/// Products of the sizes before and after an axis.
inline Index size_before(const Shape& x, Index axis) {
  Index n = 1;
  for (Index i = 0; i < axis; ++i) n *= x[i];
  return n;
}
inline Index size_after(const Shape& x, Index axis) {
  Index n = 1;
  for (Index i = axis + 1; i < x.rank(); ++i) n *= x[i];
  return n;
}

/// The same sizes, but for that of one axis.
inline Shape with_size(const Shape& x, Index axis, Index size) {
  std::vector<Index> sizes(x.sizes().begin(), x.sizes().end());
  sizes[static_cast<std::size_t>(axis)] = size;
  return Shape(std::span<const Index>(sizes));
}

/// Copies `rows` runs of n elements, which start so many elements apart.
template <Real T>
void copy_runs(const T* from, Index from_step, T* to, Index to_step, Index rows, Index n) {
  parallel_rows(rows, n, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) std::copy_n(from + r * from_step, n, to + r * to_step);
  });
}

}  // namespace headwise
