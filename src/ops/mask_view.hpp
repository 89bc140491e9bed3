// What a mask says to the kernels: the one place where it is asked.
#pragma once

#include <string_view>
#include <vector>

#include "headwise/ops/mask.hpp"
#include "kernels/attention.hpp"

namespace headwise {

/// What a mask is asked about: scores (B,H,T,S).
struct MaskedSizes {
  Index batch = 0, heads = 0, queries = 0, keys = 0;
};

/// Throws ShapeError, in the name of an op, unless the mask is one for such scores.
void check_mask(std::string_view op, const Mask& mask, const MaskedSizes& sizes);
/// Of each query of each sequence: one list where all sequences see alike, else B lists. They point
/// into the mask's tables.
std::vector<std::vector<kernels::SeenKeys>> seen_keys(const Mask& mask, const MaskedSizes& sizes);
/// Where the bias of each head stands, in the mask's table.
kernels::Bias bias_of(const Mask& mask, const MaskedSizes& sizes);

}  // namespace headwise
