#include "headwise/study/effects.hpp"

#include <algorithm>
#include <limits>

namespace headwise::study {

template <Real T>
Effects effects_of(const Decoder<T>& model, const std::vector<Batch>& batches,
                   const std::vector<HeadSet>& sets, std::uint64_t seed) {
  const bool can_resample =
      std::ranges::all_of(batches, [](const Batch& b) { return b.inputs.shape[0] > 1; });
  std::vector<Ablation> ablations;
  for (const HeadSet& set : sets) {
    ablations.push_back({set, Instead::zero, Patterns::free});
    ablations.push_back({set, Instead::zero, Patterns::frozen});
    ablations.push_back({set, Instead::mean, Patterns::free});
    if (can_resample) ablations.push_back({set, Instead::resample, Patterns::free});
  }
  const Ablated all = ablate(model, batches, ablations, seed);
  Effects effects{all.loss, {}};
  for (auto rise = all.rises.begin(); rise != all.rises.end();) {
    Effect& e = effects.each.emplace_back();
    e.full = *rise++;
    e.frozen_patterns = *rise++;
    e.mean = *rise++;
    e.resample = can_resample ? *rise++ : std::numeric_limits<double>::quiet_NaN();
  }
  return effects;
}

std::vector<HeadSet> single_heads(const ModelConfig& config) {
  std::vector<HeadSet> sets;
  for (const HeadId h : heads_of(config)) sets.push_back({h});
  return sets;
}

template Effects effects_of(const Decoder<float>&, const std::vector<Batch>&,
                            const std::vector<HeadSet>&, std::uint64_t);
template Effects effects_of(const Decoder<double>&, const std::vector<Batch>&,
                            const std::vector<HeadSet>&, std::uint64_t);

}  // namespace headwise::study
