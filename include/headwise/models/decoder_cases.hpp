// What proves the decoder: its loss, checked with respect to every parameter, for every option.
#pragma once

#include <vector>

#include "headwise/autograd/gradcheck.hpp"

namespace headwise {

/// Checks of whole small decoders with their loss: each option once each way. Where the
/// vocabulary is large a few elements of each parameter are checked, unless the options say how
/// many. The seed gives weights, tokens and what dropout drops.
template <Real T>
std::vector<GradCase> decoder_cases(std::uint64_t seed = 1);

}  // namespace headwise
