#include "headwise/study/study.hpp"

#include <algorithm>

#include "headwise/study/copying.hpp"

namespace headwise::study {
namespace {

/// Heads of untrained models that a head is compared with, at least; and sequences it is done on.
constexpr Index kUntrained = 99, kCompared = 8;

/// Scores of untrained heads on some sequences.
template <Real T>
std::vector<Scores> untrained_scores(const ModelConfig& config, const Sequences& sequences,
                                     std::uint64_t seed) {
  std::vector<Scores> all;
  for (Index n = 1; std::ssize(all) < kUntrained; ++n) {
    Rng rng = stream(seed, Purpose::study, -n);
    const Decoder<T> model(config, rng);
    const std::vector<Scores> scores = pattern_scores(model, sequences, false);
    all.insert(all.end(), scores.begin(), scores.end());
  }
  return all;
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
  const auto patterns_on = [&](On on, const Sequences& sequences) {
    std::vector<Scores> scores = pattern_scores(model, sequences);
    const Sequences few = sequences.range(0, std::min(kCompared, sequences.count()));
    compare_with_untrained(scores, pattern_scores(model, few, false),
                           untrained_scores<T>(model.config, few, seed));
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
