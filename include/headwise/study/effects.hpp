// What heads are worth in each of the usual ways: alone, and as groups of one role.
#pragma once

#include <cstdint>
#include <vector>

#include "headwise/study/ablation.hpp"

namespace headwise::study {

/// The rise of the loss, in nats a token, when heads are ablated.
struct Effect {
  double full = 0;             ///< zero, patterns free
  double frozen_patterns = 0;  ///< zero, patterns frozen
  double mean = 0;             ///< mean, patterns free
  double resample = 0;         ///< resample, patterns free; NaN when some batch has one sequence
};

struct Effects {
  double loss = 0;           ///< of the unchanged model, nats a token
  std::vector<Effect> each;  ///< of each set
};

/// ablate() in each of those ways; throws as it does.
template <Real T>
Effects effects_of(const Decoder<T>& model, const std::vector<Batch>& batches,
                   const std::vector<HeadSet>& sets, std::uint64_t seed = 1);

/// Each head of the model as a set by itself, in the order of heads_of().
std::vector<HeadSet> single_heads(const ModelConfig& config);

}  // namespace headwise::study
