// Whole numbers with a shape: tokens going into a model, labels going into a loss.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "headwise/core/error.hpp"
#include "headwise/core/shape.hpp"

namespace headwise {

/// A token or a label.
using Id = std::int32_t;

/// The label that says "do not count this position".
inline constexpr Id kIgnore = -100;

/// Ids of a given shape, row-major: tokens (B,T), labels (B,T).
struct Ids {
  Shape shape;
  std::vector<Id> values;

  Ids() = default;
  /// Throws ShapeError when the number of values is not what the shape needs.
  Ids(Shape shape_, std::vector<Id> values_) : shape(shape_), values(std::move(values_)) {
    check("ids");
  }
  /// Throws ShapeError, in the name of an op, when they no longer fit: the members are public.
  void check(std::string_view op) const {
    require(static_cast<Index>(values.size()) == shape.size(), "{}: got {} ids for shape {}", op,
            values.size(), shape);
  }
};

}  // namespace headwise
