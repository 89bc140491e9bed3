// How well a model predicts.
#pragma once

#include <optional>
#include <vector>

#include "headwise/data/source.hpp"
#include "headwise/models/decoder.hpp"

namespace headwise {

/// Loss on some tokens: mean nats each, over how many; and how many answers are right, where there
/// are answers.
struct Loss {
  double mean = 0;
  Index tokens = 0;
  std::optional<double> accuracy{};  ///< right / answers, see Accuracy; absent without answers
  Index right = 0, answers = 0;
  bool each_once = false;  ///< the whole validation part, not draws from it
};

/// Mean loss over `batches` batches drawn from the source's validation part: the same ones at every
/// call, in every run. A part of no more different sequences than would be drawn is evaluated whole
/// instead, each sequence once. Nothing is recorded, nothing is dropped. An answer is right when
/// each of its tokens is the likeliest one given those before it (so greedy decoding writes it).
/// Throws Error when no label of the batches counts, and NotFinite when the loss of one is not
/// finite: the message has the first op and tensor where that arose.
template <Real T>
Loss evaluate(const Decoder<T>& model, const Source& source, Index batch, Index batches);
/// The same, but nothing once keep_going(), asked before each batch, is false.
template <Real T>
std::optional<Loss> evaluate(const Decoder<T>& model, const Source& source, Index batch,
                             Index batches, FunctionRef<bool()> keep_going);

/// Mean loss over a whole text: windows of the model's context, side by side, every token but the
/// first predicted once. Throws DataError for fewer than two tokens, NotFinite as evaluate() does.
template <Real T>
Loss evaluate_all(const Decoder<T>& model, const std::vector<Id>& tokens);

}  // namespace headwise
