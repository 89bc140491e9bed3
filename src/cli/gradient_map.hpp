// The error of a gradient, drawn over its tensor.
#pragma once

#include <string>
#include <string_view>

#include "headwise/autograd/gradcheck.hpp"

namespace headwise::cli {

/// How the maps of a page look, and the two hatchings that they use, once a page.
extern const std::string_view kMapStyle, kMapHatching;

/// What the colours mean, as SVG: four below the tolerance, eight above it, evenly spread over the
/// logarithm.
std::string map_legend(double tolerance);

/// |a-n| of each element, relative to the largest gradient of the tensor (TensorCheck::worst says
/// to what exactly), as SVG. Rows and columns are the last two axes, the other axes blocks below
/// each other. A tensor of more than some 64 rows or columns is reduced: a cell is the largest
/// error of several elements. The worst is outlined; each cell tells its numbers to a pointer.
std::string gradient_map(const TensorCheck& tensor, double tolerance);

}  // namespace headwise::cli
