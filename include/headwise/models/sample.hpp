// Continues a text, a token at a time.
#pragma once

#include <functional>
#include <vector>

#include "headwise/models/decoder.hpp"

namespace headwise {

/// Throws UsageError unless a temperature is finite and not negative.
void check_temperature(double temperature);

/// Draws the next token from logits (V): softmax(logits / temperature), or for temperature 0 the
/// largest, the lowest id among equals. Throws Error when the logits are not finite.
template <Real T>
Id draw(std::span<const T> logits, double temperature, Rng& rng);

/// `count` tokens that continue the prompt, which must not be empty. The model sees the last
/// `context` tokens. `each`, if given, hears every token as it is drawn and stops by false.
template <Real T>
std::vector<Id> sample(const Decoder<T>& model, std::vector<Id> prompt, Index count,
                       double temperature, Rng& rng, const std::function<bool(Id)>& each = nullptr);

}  // namespace headwise
