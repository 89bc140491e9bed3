// What proves a layer: checks of its inputs and every parameter. A layer without any does not link.
#pragma once

#include <vector>

#include "headwise/nn/gradcheck.hpp"

namespace headwise {

namespace proofs {
#define HEADWISE_LAYER(name) \
  template <Real T>          \
  std::vector<GradCase> name(std::uint64_t seed);
#include "headwise/nn/layers.def"
#undef HEADWISE_LAYER
}  // namespace proofs

/// Checks of every layer, in the order of layers.def, each in every way that it can be built. The
/// seed gives weights, inputs and what dropout drops.
template <Real T>
std::vector<GradCase> layer_cases(std::uint64_t seed = 1);

}  // namespace headwise
