// How well a model predicts a text.
#pragma once

#include <optional>
#include <vector>

#include "headwise/models/decoder.hpp"

namespace headwise {

/// Loss of some text: mean nats a token, over how many.
struct Loss {
  double mean = 0;
  Index tokens = 0;
};

/// Mean loss over the batches an evaluation draws from `tokens`: the same ones at every call, in
/// every run. Nothing is recorded, nothing is dropped.
template <Real T>
Loss evaluate(const Decoder<T>& model, const std::vector<Id>& tokens, Index batch, Index batches);
/// The same, but nothing once keep_going(), asked before each batch, is false.
template <Real T>
std::optional<Loss> evaluate(const Decoder<T>& model, const std::vector<Id>& tokens, Index batch,
                             Index batches, FunctionRef<bool()> keep_going);

/// Mean loss over a whole text: windows of the model's context, side by side, every token but the
/// first predicted once. Throws DataError for fewer than two tokens.
template <Real T>
Loss evaluate_all(const Decoder<T>& model, const std::vector<Id>& tokens);

}  // namespace headwise
