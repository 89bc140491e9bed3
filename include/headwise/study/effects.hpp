// What heads are worth in each of the usual ways: alone, and as groups of one role.
#pragma once

#include <cstdint>
#include <vector>

#include "headwise/study/ablation.hpp"

namespace headwise::study {

/// The rise of the loss, in nats a token, when heads are ablated.
struct Effect {
  double full = 0;             ///< zero, patterns free
  double full_error = 0;       ///< its standard error over sequences; NaN when there is one
  double frozen_patterns = 0;  ///< zero, patterns frozen
  double mean = 0;             ///< mean, patterns free
  double resample = 0;         ///< resample, patterns free; NaN when some batch has one sequence
};

/// Which of them are computed; what is not is NaN.
enum class Ways {
  all,
  zero  ///< `full` and `frozen_patterns`: half the work
};

struct Effects {
  double loss = 0;                               ///< of the unchanged model, nats a token
  std::vector<Effect> each;                      ///< of each set
  std::vector<Index> counts;                     ///< as in Ablated, like the next
  std::vector<std::vector<double>> by_sequence;  ///< of each set and sequence, `full`
};

/// ablate() in each of those ways; throws as it does.
template <Real T>
Effects effects_of(const Decoder<T>& model, const std::vector<Batch>& batches,
                   const std::vector<HeadSet>& sets, std::uint64_t seed = 1, Ways ways = Ways::all);

/// Each head of the model as a set by itself, in the order of heads_of().
std::vector<HeadSet> single_heads(const ModelConfig& config);

/// Heads of one role.
struct Group {
  HeadSet heads;
  Effect joint;              ///< of all of them together
  double sum_of_single = 0;  ///< of what each costs alone, `full`
  double excess = 0;         ///< joint.full - kRedundantFactor sum_of_single
  double excess_error = 0;   ///< its standard error over sequences; NaN when there is one
  bool redundant = false;    ///< together they cost clearly more: one stands in for another
};

/// A group of two heads and more is redundant when its excess is above kRedundantErrors times its
/// standard error (each sequence's single rises are taken off its joint one first: they go
/// together), and the joint rise above kRedundantRise nats a token, zeroed and with its mean in its
/// place: of less there is hardly anything to share, and a constant that heads add, as those of
/// untrained models do, says nothing of a text. Never from one sequence. All are choices of ours;
/// three errors, since few sequences do not tell the error well.
inline constexpr double kRedundantFactor = 1.5, kRedundantErrors = 3, kRedundantRise = 0.02;

/// What groups are worth. `singles` are the effects of single_heads(), on the same batches. Throws
/// ShapeError for another number of them, and as ablate() does.
template <Real T>
std::vector<Group> groups_of(const Decoder<T>& model, const std::vector<Batch>& batches,
                             const std::vector<HeadSet>& sets, const Effects& singles,
                             std::uint64_t seed = 1);

}  // namespace headwise::study
