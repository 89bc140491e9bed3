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

template <Real T>
std::vector<Group> groups_of(const Decoder<T>& model, const std::vector<Batch>& batches,
                             const std::vector<HeadSet>& sets, const std::vector<Effect>& singles,
                             std::uint64_t seed) {
  const Index heads = model.config.heads;
  require(static_cast<Index>(singles.size()) == model.config.layers * heads,
          "groups: {} single effects for {} layers of {} heads", singles.size(),
          model.config.layers, heads);
  const Effects joint = effects_of(model, batches, sets, seed);
  std::vector<Group> groups;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    Group& g = groups.emplace_back();
    g.heads = sets[i];
    g.joint = joint.each[i];
    for (const HeadId h : g.heads)
      g.sum_of_single += singles[static_cast<std::size_t>(h.layer * heads + h.head)].full;
    g.redundant = g.heads.size() > 1 && g.joint.full > kRedundantRise &&
                  g.joint.full > kRedundantFactor * g.sum_of_single;
  }
  return groups;
}

#define HEADWISE_INSTANTIATE(T)                                                                  \
  template Effects effects_of(const Decoder<T>&, const std::vector<Batch>&,                      \
                              const std::vector<HeadSet>&, std::uint64_t);                       \
  template std::vector<Group> groups_of(const Decoder<T>&, const std::vector<Batch>&,            \
                                        const std::vector<HeadSet>&, const std::vector<Effect>&, \
                                        std::uint64_t);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise::study
