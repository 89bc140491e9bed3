// What the model would say if it stopped after each layer.
#pragma once

#include <string>
#include <vector>

#include "headwise/models/decoder.hpp"

namespace headwise::study {

/// A token and the probability it is given.
struct Guess {
  Id id;
  double p;
};

/// The residual stream at one depth, read by the last norm and the output weights.
struct LensLayer {
  std::string name;                     ///< "embed", "after 0", "after 1", ...
  std::vector<std::vector<Guess>> top;  ///< of each of the B T positions, the likeliest first
};

/// The logit lens (nostalgebraist 2020, "interpreting GPT: the logit lens"): the `most` likeliest
/// next tokens of every position before the first block and after each one, L+1 layers; the last is
/// what the model says. Of equally likely tokens the lower id comes first. ids (B,T).
/// Throws as the model does, and UsageError unless `most` is at least 1.
template <Real T>
std::vector<LensLayer> logit_lens(const Decoder<T>& model, const Ids& ids, Index most);

}  // namespace headwise::study
