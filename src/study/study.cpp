#include "headwise/study/study.hpp"

#include <algorithm>

#include "headwise/study/copying.hpp"

namespace headwise::study {
namespace {

/// Heads of untrained models that a head is compared with, at least; and sequences it is done on.
constexpr Index kUntrained = 99, kCompared = 4;

/// As many untrained models as that needs.
template <Real T>
std::vector<Decoder<T>> untrained_models(const ModelConfig& config, std::uint64_t seed) {
  std::vector<Decoder<T>> models;
  while (std::ssize(models) * config.layers * config.heads < kUntrained) {
    Rng rng = stream(seed, Purpose::study, -1 - std::ssize(models));
    models.emplace_back(config, rng);
  }
  return models;
}

}  // namespace

template <Real T>
std::vector<HeadStudy> study_heads(const Decoder<T>& model, const Sets& sets, std::uint64_t seed,
                                   const RoleRule& rule) {
  std::vector<HeadStudy> heads;
  for (const HeadId id : heads_of(model.config)) heads.push_back({.id = id});
  const auto keep = [&](On on, const std::vector<Scores>& scores) {
    for (std::size_t i = 0; i < heads.size(); ++i) heads[i].on[on] = scores[i];
  };
  const std::vector<Decoder<T>> untrained = untrained_models<T>(model.config, seed);
  const auto patterns_on = [&](On on, const Sequences& sequences) {
    std::vector<Scores> scores = pattern_scores(model, sequences), others;
    const Sequences few = sequences.range(0, std::min(kCompared, sequences.count()));
    for (const Decoder<T>& other : untrained)
      for (const Scores& head : pattern_scores(other, few, false)) others.push_back(head);
    compare_with_untrained(scores, pattern_scores(model, few, false), others);
    keep(on, scores);
  };
  patterns_on(On::data, sets.data);
  if (sets.repeated) {
    patterns_on(On::repeated, *sets.repeated);
    const auto copying = copying_scores(model, *sets.repeated);
    for (std::size_t i = 0; i < heads.size(); ++i)
      if (copying[i]) heads[i].on[On::repeated][Score::copying] = *copying[i];
  }
  if (sets.stories) keep(On::stories, relation_scores(model, *sets.stories));
  name_roles(heads, rule);
  return heads;
}

#define HEADWISE_INSTANTIATE(T)                                                              \
  template std::vector<HeadStudy> study_heads(const Decoder<T>&, const Sets&, std::uint64_t, \
                                              const RoleRule&);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise::study
