// How the loss grows as more and more heads are taken away.
#pragma once

#include <cstdint>
#include <vector>

#include "headwise/study/ablation.hpp"

namespace headwise::study {

struct PruningOptions {
  Index points = 10;  ///< numbers of heads looked at, 0 and all included: at least 2
  Index orders = 3;   ///< random orders: at least 1
  std::uint64_t seed = 1;
};

/// With so many heads zeroed, patterns free, the loss in nats a token.
struct PruningPoint {
  Index removed = 0;
  double loss = 0;             ///< of several orders: their mean
  double least = 0, most = 0;  ///< of several orders
};

struct PruningCurve {
  std::vector<PruningPoint> by_importance;  ///< the least important heads first
  std::vector<PruningPoint> random;         ///< in random orders
};

/// The loss against the number of heads removed (Michel et al. 2019, arXiv:1905.10650, sec. 4,
/// who order heads by their importance, normalized by layer). `importances` in the order of
/// heads_of(); of equal ones the earlier head goes first. Where there are more heads than points,
/// their numbers are evenly spaced: it costs (points - 2) (orders + 1) + 2 forward passes at most,
/// whatever the number of heads. Throws ShapeError for another number of importances, UsageError
/// for too few points or orders, and as ablate() does.
template <Real T>
PruningCurve pruning_curve(const Decoder<T>& model, const std::vector<Batch>& batches,
                           const std::vector<double>& importances,
                           const PruningOptions& options = {});

}  // namespace headwise::study
