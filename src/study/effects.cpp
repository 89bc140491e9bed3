#include "headwise/study/effects.hpp"

#include <algorithm>
#include <limits>

namespace headwise::study {

template <Real T>
Effects effects_of(const Decoder<T>& model, const std::vector<Batch>& batches,
                   const std::vector<HeadSet>& sets, std::uint64_t seed, Ways ways) {
  const bool take_mean = ways == Ways::all;
  const bool resample = ways == Ways::all && std::ranges::all_of(batches, [](const Batch& b) {
                          return b.inputs.shape[0] > 1;
                        });
  std::vector<Ablation> ablations;
  for (const HeadSet& set : sets) {
    ablations.push_back({set, Instead::zero, Patterns::free});
    ablations.push_back({set, Instead::zero, Patterns::frozen});
    if (take_mean) ablations.push_back({set, Instead::mean, Patterns::free});
    if (resample) ablations.push_back({set, Instead::resample, Patterns::free});
  }
  Ablated all = ablate(model, batches, ablations, seed);
  Effects effects;
  effects.loss = all.loss;
  effects.counts = std::move(all.counts);
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t at = 0; at < all.rises.size();) {
    Effect& e = effects.each.emplace_back();
    e.full_error = all.errors[at];
    effects.by_sequence.push_back(std::move(all.by_sequence[at]));
    e.full = all.rises[at++];
    e.frozen_patterns = all.rises[at++];
    e.mean = take_mean ? all.rises[at++] : kUnknown;
    e.resample = resample ? all.rises[at++] : kUnknown;
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
                             const std::vector<HeadSet>& sets, const Effects& singles,
                             std::uint64_t seed) {
  const Index heads = model.config.heads;
  require(static_cast<Index>(singles.each.size()) == model.config.layers * heads,
          "groups: {} single effects for {} layers of {} heads", singles.each.size(),
          model.config.layers, heads);
  const Effects joint = effects_of(model, batches, sets, seed);
  const auto fits = [&](const auto& rises) { return rises.size() == joint.counts.size(); };
  require(singles.by_sequence.size() == singles.each.size() &&
              std::ranges::all_of(singles.by_sequence, fits),
          "groups: the single effects are not those of {} sequences", joint.counts.size());
  std::vector<Group> groups;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    Group& g = groups.emplace_back();
    g.heads = sets[i];
    g.joint = joint.each[i];
    std::vector<double> excess = joint.by_sequence[i];
    for (const HeadId h : g.heads) {
      const auto at = static_cast<std::size_t>(h.layer * heads + h.head);
      g.sum_of_single += singles.each[at].full;
      for (std::size_t s = 0; s < excess.size(); ++s)
        excess[s] -= kRedundantFactor * singles.by_sequence[at].at(s);
    }
    g.excess = g.joint.full - kRedundantFactor * g.sum_of_single;
    g.excess_error = standard_error(excess, joint.counts);
    g.redundant = g.heads.size() > 1 && g.joint.full > kRedundantRise &&
                  g.joint.mean > kRedundantRise && g.excess > kRedundantErrors * g.excess_error;
  }
  return groups;
}

#define HEADWISE_INSTANTIATE(T)                                                       \
  template Effects effects_of(const Decoder<T>&, const std::vector<Batch>&,           \
                              const std::vector<HeadSet>&, std::uint64_t, Ways);      \
  template std::vector<Group> groups_of(const Decoder<T>&, const std::vector<Batch>&, \
                                        const std::vector<HeadSet>&, const Effects&,  \
                                        std::uint64_t);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise::study
