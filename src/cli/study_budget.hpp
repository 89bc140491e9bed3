// How much is ablated, so that a study takes about as long for every model.
#pragma once

#include <vector>

#include "headwise/study/effects.hpp"
#include "headwise/study/sequences.hpp"

namespace headwise::cli {

/// What heads are ablated on, and how.
struct AblationPlan {
  Index sequences = 0, length = 0;      ///< the first tokens of the first sequences
  Index points = 9;                     ///< of the pruning curve
  study::Ways ways = study::Ways::all;  ///< of single heads
};

/// As much as some 20 seconds of one core allow, counted in arithmetic: the answer depends on
/// nothing but the model and the data, and no figure on the machine. Fewer than 4 sequences tell
/// too little of their spread. Where no more can be afforded, first the sequences are cut to 256
/// and 128 tokens (unless one would lose all its targets), then the pruning curve has fewer
/// points, and last single heads are not replaced by their means and by other sequences'. Where
/// all of that is not enough it takes longer: minutes for a model of 12 layers of 12 heads.
/// `weights`: how many numbers the model has.
AblationPlan plan_ablation(const ModelConfig& config, Index weights, const study::Sequences& data);

/// Those sequences, without the ones that are equal to an earlier one when cut, in batches of two
/// or more, which resampling needs (of one sequence there is nothing else), and of so few that a
/// batch's patterns (L,B,H,T,T) stay small.
std::vector<Batch> ablated_batches(const ModelConfig& config, const study::Sequences& data,
                                   const AblationPlan& plan);

}  // namespace headwise::cli
