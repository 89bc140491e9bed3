// Row-major places of a shape.
#pragma once

#include "headwise/core/shape.hpp"

namespace headwise {

/// How many elements further the next place along an axis is; 0 is the first axis.
inline Index stride_of(const Shape& shape, Index axis) {
  Index stride = 1;
  for (Index i = axis + 1; i < shape.rank(); ++i) stride *= shape[i];
  return stride;
}

/// The place of an element along an axis.
inline Index index_along(const Shape& shape, Index axis, Index element) {
  return element / stride_of(shape, axis) % shape[axis];
}

}  // namespace headwise
