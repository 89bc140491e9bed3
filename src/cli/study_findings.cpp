#include "cli/study_findings.hpp"

#include <algorithm>

#include "headwise/nn/visit.hpp"
#include "headwise/study/importance.hpp"

namespace headwise::cli {
namespace {

using study::HeadSet, study::HeadStudy, study::Sequences;

/// Floating-point operations that ablations may take, about: some ten seconds on two cores.
constexpr double kAblationWork = 1.2e12;
/// Tokens that go through the model at once.
constexpr Index kAtOnce = 2048;

/// How many sequences heads are ablated on: as many as the work allows, so that the answer does not
/// depend on the machine; 3 at least.
template <Real T>
Index ablated_sequences(const Decoder<T>& model, const Sequences& data) {
  Decoder<T> copy = model;  // shares the weights
  const Index weights = parameter_count(copy);
  // Half the layers for each head and way, all of them for groups and the pruning curve.
  const double passes = 2.0 * static_cast<double>(model.config.layers * model.config.heads) + 60;
  const double work = passes * 2 * static_cast<double>(weights) * static_cast<double>(data.time());
  const auto affordable = static_cast<Index>(std::min(1e6, kAblationWork / work));
  return std::min(data.count(), std::max<Index>(3, affordable));
}

/// The sequences in batches of two or more, which resampling needs; of one there is nothing else.
std::vector<Batch> batches_of(const Sequences& data, Index count) {
  const Index block = std::max<Index>(2, kAtOnce / data.time());
  std::vector<Batch> batches;
  for (Index at = 0; at < count;) {
    const Index left = count - at, take = left - block == 1 ? left : std::min(left, block);
    batches.push_back(data.range(at, at + take).batch);
    at += take;
  }
  return batches;
}

/// Each role's heads, and those without one.
std::vector<GroupFinding> group_heads(const std::vector<HeadStudy>& heads) {
  std::vector<GroupFinding> groups;
  const auto add = [&](std::optional<study::Score> role, const std::string& label,
                       const HeadSet& of) {
    GroupFinding& added = groups.emplace_back();
    added.role = role;
    added.label = label;
    added.group.heads = of;
  };
  for (const study::RoleGroup& g : study::role_groups(heads)) add(g.role, g.label, g.heads);
  HeadSet rest;
  for (const HeadStudy& head : heads)
    if (!head.role) rest.push_back(head.id);
  if (!rest.empty()) add(std::nullopt, "no role", rest);
  return groups;
}

template <Real T>
Causes causes_of(const Decoder<T>& model, const Sequences& data,
                 const std::vector<HeadStudy>& heads, std::uint64_t seed, const Telling& tell) {
  Causes found;
  found.sequences = ablated_sequences(model, data);
  const std::vector<Batch> batches = batches_of(data, found.sequences);
  tell("ablating heads one by one");
  const study::Effects singles =
      study::effects_of(model, batches, study::single_heads(model.config), seed);
  found.loss = singles.loss;
  found.heads = singles.each;
  tell("gates' gradients");
  found.importance = study::importance(model, batches);
  tell("ablating heads of one role together");
  found.groups = group_heads(heads);
  std::vector<HeadSet> sets;
  for (const GroupFinding& g : found.groups) sets.push_back(g.group.heads);
  const auto groups = study::groups_of(model, batches, sets, singles.each, seed);
  for (std::size_t i = 0; i < groups.size(); ++i) found.groups[i].group = groups[i];
  tell("taking away more and more heads");
  found.pruning = study::pruning_curve(
      model, batches, study::normalized_by_layer(found.importance, model.config), {.seed = seed});
  return found;
}

/// Tokens whose copying is looked at, at most: of a large vocabulary all would take minutes.
constexpr Index kCopiedTokens = 2000;

template <Real T>
Readings readings_of(const Decoder<T>& model) {
  Readings found;
  found.composition = study::composition(model);
  for (const study::Circuits& c : study::circuits(model)) {
    found.ov.push_back(study::positivity(c.ov));
    found.qk.push_back(study::positivity(c.qk));
  }
  const Index most = std::min(kCopiedTokens, model.config.vocab);
  found.copying = study::top_copying(model, model.tok.weight.value, most);
  if (!model.config.attention_only)
    found.copying_effective = study::top_copying(model, study::effective_embedding(model), most);
  return found;
}

}  // namespace

template <Real T>
Findings find(const Decoder<T>& model, const study::Sets& sets, std::uint64_t seed,
              const Telling& tell) {
  Findings found;
  tell("scoring what heads look at");
  found.heads = study::study_heads(model, sets, seed);
  found.causes = causes_of(model, sets.data, found.heads, seed, tell);
  tell("reading the weights");
  found.weights = readings_of(model);
  return found;
}

#define HEADWISE_INSTANTIATE(T) \
  template Findings find(const Decoder<T>&, const study::Sets&, std::uint64_t, const Telling&);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise::cli
