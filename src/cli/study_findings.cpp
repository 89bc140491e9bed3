#include "cli/study_findings.hpp"

#include <algorithm>

#include "cli/study_budget.hpp"
#include "headwise/nn/visit.hpp"
#include "headwise/study/importance.hpp"

namespace headwise::cli {
namespace {

using study::HeadId, study::HeadSet, study::HeadStudy, study::Score, study::Sequences;

/// Heads named previous_token whose results some head named induction reads by its keys, by more
/// than chance.
HeadSet feeding_induction(const std::vector<HeadStudy>& heads,
                          const std::vector<study::Composition>& pairs, Index width) {
  const auto is = [&](HeadId id, Score role) {
    const auto at = std::ranges::find(heads, id, &HeadStudy::id);
    return at != heads.end() && at->role == role;
  };
  HeadSet feeding;
  for (const study::Composition& c : pairs)  // ordered by `from`
    if (c.k > study::composition_baseline(width) && is(c.from, Score::previous_token) &&
        is(c.to, Score::prefix_matching) && (feeding.empty() || feeding.back() != c.from))
      feeding.push_back(c.from);
  return feeding;
}

template <Real T>
Causes causes_of(const Decoder<T>& model, const Sequences& data,
                 const std::vector<HeadStudy>& heads, const std::vector<study::Composition>& pairs,
                 std::uint64_t seed, const Telling& tell) {
  Decoder<T> copy = model;  // shares the weights
  const AblationPlan plan = plan_ablation(model.config, parameter_count(copy), data);
  const std::vector<Batch> batches = ablated_batches(model.config, data, plan);
  Causes found;
  for (const Batch& batch : batches) found.sequences += batch.inputs.shape[0];
  found.length = plan.length;
  tell("ablating heads one by one");
  const study::Effects singles =
      study::effects_of(model, batches, study::single_heads(model.config), seed, plan.ways);
  found.loss = singles.loss;
  found.heads = singles.each;
  tell("gates' gradients");
  found.importance = study::importance(model, batches);
  tell("ablating heads of one role together");
  found.groups = group_heads(heads, pairs, model.config.width);
  std::vector<HeadSet> sets;
  for (const GroupFinding& g : found.groups) sets.push_back(g.group.heads);
  const auto groups = study::groups_of(model, batches, sets, singles, seed);
  for (std::size_t i = 0; i < groups.size(); ++i) found.groups[i].group = groups[i];
  tell("taking away more and more heads");
  found.pruning = study::pruning_curve(model, batches,
                                       study::normalized_by_layer(found.importance, model.config),
                                       {.points = plan.points, .seed = seed});
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

std::vector<GroupFinding> group_heads(const std::vector<HeadStudy>& heads,
                                      const std::vector<study::Composition>& pairs, Index width) {
  std::vector<GroupFinding> groups;
  const auto add = [&](std::optional<Score> role, const std::string& label, bool alike,
                       const HeadSet& of) {
    if (of.empty()) return;
    GroupFinding& added = groups.emplace_back();
    added.role = role;
    added.label = label;
    added.alike = alike;
    added.group.heads = of;
  };
  HeadSet without_role, path = feeding_induction(heads, pairs, width), rest;
  for (const study::RoleGroup& g : study::role_groups(heads)) add(g.role, g.label, true, g.heads);
  for (const HeadStudy& head : heads)
    if (!head.role) without_role.push_back(head.id);
  add(std::nullopt, "no role", true, without_role);
  if (std::ranges::count(heads, Score::prefix_matching, &HeadStudy::role) == 0) return groups;
  for (const HeadStudy& head : heads)
    if (head.role != Score::prefix_matching && std::ranges::count(path, head.id) == 0)
      rest.push_back(head.id);
  add(std::nullopt, "previous tokens that feed the keys of induction", false, path);
  add(std::nullopt, "all but induction and what feeds its keys", false, rest);
  return groups;
}

template <Real T>
Findings find(const Decoder<T>& model, const study::Sets& sets, std::uint64_t seed,
              const Telling& tell) {
  Findings found;
  tell("scoring what heads look at");
  found.heads = study::study_heads(model, sets, seed);
  tell("reading the weights");
  found.weights = readings_of(model);
  found.causes = causes_of(model, sets.data, found.heads, found.weights.composition, seed, tell);
  return found;
}

#define HEADWISE_INSTANTIATE(T) \
  template Findings find(const Decoder<T>&, const study::Sets&, std::uint64_t, const Telling&);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise::cli
