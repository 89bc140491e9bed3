// Whether a head writes what it looks at.
#pragma once

#include "headwise/study/scores.hpp"

namespace headwise::study {

/// The copying score of every head, in the order of heads_of(): the mean, over the queries that
/// raise any of their sequence's tokens, of the share of what is raised that falls on the token
/// attended to most (raised_tokens(); Olsson et al. 2022, arXiv:2209.11895, appendix, whose ratio
/// is rescaled). From 0 to 1. Queries that attend most to the sequence's first token are left out:
/// what a head writes while it rests there is the same for all of them, and no copy. chance: of the
/// n distinct tokens any other, 1/n; p: the shares dealt at random over the tokens, queries
/// independently (ShuffleBound). Absent for a head without such queries.
template <Real T>
std::vector<std::optional<Measure>> copying_scores(const Decoder<T>& model,
                                                   const Sequences& sequences);

}  // namespace headwise::study
