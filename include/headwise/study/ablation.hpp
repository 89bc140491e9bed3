// What a set of heads is worth: how far the loss rises when something else stands in the place of
// what they computed.
#pragma once

#include <cstdint>
#include <vector>

#include "headwise/data/text.hpp"
#include "headwise/study/head.hpp"

namespace headwise::study {

/// What stands in the place of a head's z (B,T,D), before W_O.
enum class Instead {
  zero,     ///< nothing (Michel et al. 2019, arXiv:1905.10650, sec. 3)
  mean,     ///< its mean in the unchanged model over all sequences' positions, each up to its last
            ///< target that counts: padding has no part in it
  resample  ///< that of another sequence of the batch, at the same position; of a shorter one this
            ///< may be what the model makes of its padding
};

/// What the layers behind look at.
enum class Patterns {
  free,   ///< whatever they now compute
  frozen  ///< what they looked at in the unchanged model: only what the heads move counts, not
          ///< where they make others look (Olsson et al. 2022, arXiv:2209.11895, appendix,
          ///< "pattern-preserving" ablation)
};

using HeadSet = std::vector<HeadId>;

/// Heads ablated together.
struct Ablation {
  HeadSet heads;
  Instead instead = Instead::zero;
  Patterns patterns = Patterns::free;
};

/// Losses in nats a token, over the positions that count.
struct Ablated {
  double loss = 0;             ///< of the unchanged model
  Index tokens = 0;            ///< how many count
  std::vector<double> rises;   ///< of each ablation: its loss minus that of the unchanged model
  std::vector<double> errors;  ///< standard errors of the rises
  std::vector<Index> counts;   ///< of each sequence: how many of its positions count
  std::vector<std::vector<double>>
      by_sequence;  ///< of each ablation and sequence: the rise, summed over its positions
};

/// The standard error of sum(d) / sum(n), had other sequences been drawn; d_s what a sequence adds,
/// n_s its positions that count, S the number of sequences that have some:
///   r = sum(d) / sum(n)   error = sqrt(S / (S - 1) sum_s (d_s - r n_s)^2) / sum(n)
/// (the ratio estimator's; Cochran 1977, Sampling Techniques, sec. 2.11). Of sequences of one
/// length it is the usual standard error of a mean. NaN where S is below 2. `sums` and `counts` by
/// sequence.
double standard_error(const std::vector<double>& sums, const std::vector<Index>& counts);

/// The rise of the loss for each ablation. The mean is one vector a head, not one a position: from
/// few sequences, a position's own mean would be little else than what is to be taken away.
/// Resampling takes z along one cycle through the batch's sequences, drawn from the seed and the
/// batch's number, the same for all heads of all ablations: no sequence keeps its own.
/// The unchanged model runs once or twice; each ablation costs what comes after its first layer of
/// heads. Holds the streams and, for frozen patterns, the patterns (L,B,H,T,T) of one batch, and a
/// pass a thread. No figure depends on the other ablations, on their order, or, but for resampling
/// and the forward pass's last bits, on how sequences are put into batches. Throws ShapeError for a
/// head that the model does not have, for targets of another shape than the inputs, and when no
/// position counts; UsageError for resampling from a batch of one sequence.
template <Real T>
Ablated ablate(const Decoder<T>& model, const std::vector<Batch>& batches,
               const std::vector<Ablation>& ablations, std::uint64_t seed = 1);

}  // namespace headwise::study
