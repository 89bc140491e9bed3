// Every head of a model, looked at on every fitting set.
#pragma once

#include "headwise/study/relations.hpp"
#include "headwise/study/roles.hpp"

namespace headwise::study {

/// What a model's heads are studied on; what is absent is left out.
struct Sets {
  Sequences data;
  std::optional<Sequences> repeated{};
  std::optional<Questions> stories{};
};

/// The scores of every head on each set, in the order of heads_of(), and its role. Entropy,
/// confidence and mean distance are compared with those of untrained models of the same
/// configuration, drawn by the seed (the model's own seed aside).
template <Real T>
std::vector<HeadStudy> study_heads(const Decoder<T>& model, const Sets& sets, std::uint64_t seed,
                                   const RoleRule& rule = {});

}  // namespace headwise::study
