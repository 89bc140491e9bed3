// Which part of a tensor is meant, in words.
#pragma once

#include <string>
#include <vector>

#include "headwise/core/shape.hpp"

namespace headwise {

/// What is said of an element: wrong, right, or nothing, where both gradients are next to zero.
enum class Mark : char { silent, right, wrong };

/// "everything", "row 3 of 5 (the last)", "head 1 of 2 (columns 2 to 3 of 4)", "7 of 15 elements:
/// 0, 3, ...": the part of a tensor whose marks are wrong. The box around them where nothing right
/// is inside; `heads` as in GradOptions.
std::string describe_region(const Shape& shape, const std::vector<Mark>& marks, Index heads);

}  // namespace headwise
