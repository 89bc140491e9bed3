// Continues a text, a token at a time.
#pragma once

#include <functional>
#include <vector>

#include "headwise/models/decoder.hpp"
#include "headwise/models/draw.hpp"

namespace headwise {

/// `count` tokens that continue the prompt, which must not be empty. The model sees the last
/// `context` tokens. `each`, if given, hears every token as it is drawn and stops by false.
template <Real T>
std::vector<Id> sample(const Decoder<T>& model, std::vector<Id> prompt, Index count,
                       const Drawing& drawing, Rng& rng,
                       const std::function<bool(Id)>& each = nullptr);

}  // namespace headwise
