// Which head, at which position, carries what makes one prompt's answer differ from another's.
#pragma once

#include <optional>
#include <vector>

#include "headwise/core/ids.hpp"
#include "headwise/study/head.hpp"

namespace headwise::study {

/// The tokens whose logits are compared; the default is the likeliest token after the clean prompt
/// (answer) and after the corrupt one (wrong), the first of equals.
struct Answers {
  std::optional<Id> answer{}, wrong{};
};

struct Patching {
  Id answer = 0, wrong = 0;
  double clean_difference = 0;               ///< M of the clean prompt
  double corrupt_difference = 0;             ///< M of the corrupt one
  std::vector<std::vector<double>> effects;  ///< (T) of each head, in the order of heads_of()
};

/// Runs the corrupt prompt with the z of one head at one position (D numbers before W_O) taken from
/// the clean one, for each head and position, and tells
///   (M_patched - M_corrupt) / (M_clean - M_corrupt),  M = logit(answer) - logit(wrong)
/// after the last token: activation patching, as TransformerLens's patching.py does it. It is 0
/// where the patch changes nothing, M_patched = M_corrupt, and 1 where the run ends as the clean
/// one does, M_patched = M_clean; of all linear scales of M only this one is both. It may be below
/// 0 or above 1, and the effects of several heads need not add up. All heads together need not give
/// 1 either: the embeddings remain those of the corrupt prompt. Costs, for each head and position,
/// the layers from the head on. Throws UsageError, naming --clean and --corrupt, for prompts
/// without tokens, of different lengths or beyond the model's context, when the answers are one
/// token, and when M hardly differs; ShapeError for an answer outside the vocabulary.
template <Real T>
Patching patch_heads(const Decoder<T>& model, const std::vector<Id>& clean,
                     const std::vector<Id>& corrupt, const Answers& answers = {});

}  // namespace headwise::study
