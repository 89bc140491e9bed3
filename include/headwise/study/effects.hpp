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

/// Heads of one role.
struct Group {
  HeadSet heads;
  Effect joint;              ///< of all of them together
  double sum_of_single = 0;  ///< of what each costs alone, `full`
  bool redundant = false;    ///< together they cost clearly more: one stands in for another
};

/// A group of two heads and more is redundant when its joint rise is above kRedundantFactor times
/// the sum of the single ones, and above kRedundantRise nats a token: of less there is hardly
/// anything to share. Both are choices of ours.
inline constexpr double kRedundantFactor = 1.5, kRedundantRise = 0.02;

/// What groups are worth. `singles` are the effects of single_heads(), on the same batches. Throws
/// ShapeError for another number of them, and as ablate() does.
template <Real T>
std::vector<Group> groups_of(const Decoder<T>& model, const std::vector<Batch>& batches,
                             const std::vector<HeadSet>& sets, const std::vector<Effect>& singles,
                             std::uint64_t seed = 1);

}  // namespace headwise::study
