#include "headwise/study/pruning.hpp"

#include <algorithm>
#include <numeric>

namespace headwise::study {
namespace {

/// From 0 to `heads`, evenly spaced, all of them where there are no more than points.
std::vector<Index> numbers_removed(Index heads, Index points) {
  const Index steps = std::min(points - 1, heads);
  std::vector<Index> all;
  for (Index i = 0; i <= steps; ++i) all.push_back((i * heads + steps / 2) / steps);
  return all;
}

/// Places in the order of heads_of(), the least important first.
std::vector<Index> least_first(const std::vector<double>& importances) {
  std::vector<Index> order(importances.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::ranges::stable_sort(order, {},
                           [&](Index i) { return importances[static_cast<std::size_t>(i)]; });
  return order;
}

}  // namespace

template <Real T>
PruningCurve pruning_curve(const Decoder<T>& model, const std::vector<Batch>& batches,
                           const std::vector<double>& importances, const PruningOptions& options) {
  const std::vector<HeadId> heads = heads_of(model.config);
  const auto count = static_cast<Index>(heads.size());
  require(importances.size() == heads.size(), "pruning: {} importances for {} heads",
          importances.size(), heads.size());
  require<UsageError>(options.points >= 2 && options.orders >= 1,
                      "pruning: {} points and {} random orders, need at least 2 and 1",
                      options.points, options.orders);
  std::vector<std::vector<Index>> orders = {least_first(importances)};
  for (Index i = 0; i < options.orders; ++i)
    orders.push_back(stream(options.seed, Purpose::pruning, i).permutation(count));

  const std::vector<Index> removed = numbers_removed(count, options.points);
  std::vector<Ablation> ablations;  // of all orders, point by point: none and all are the same
  std::vector<std::size_t> of_point;
  for (const Index n : removed) {
    of_point.push_back(ablations.size());
    for (const std::vector<Index>& order : orders) {
      Ablation& a = ablations.emplace_back();
      for (Index i = 0; i < n; ++i)
        a.heads.push_back(heads[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])]);
      if (n == 0 || n == count) break;
    }
  }
  const Ablated got = ablate(model, batches, ablations);

  PruningCurve curve;
  for (std::size_t p = 0; p < removed.size(); ++p) {
    const auto first = got.rises.begin() + static_cast<Index>(of_point[p]);
    const bool shared = removed[p] == 0 || removed[p] == count;
    const auto from = shared ? first : first + 1;  // the random orders
    const auto to = shared ? first + 1 : from + options.orders;
    curve.by_importance.push_back(
        {removed[p], got.loss + *first, got.loss + *first, got.loss + *first});
    curve.random.push_back(
        {removed[p], got.loss + std::accumulate(from, to, 0.0) / static_cast<double>(to - from),
         got.loss + *std::min_element(from, to), got.loss + *std::max_element(from, to)});
  }
  return curve;
}

template PruningCurve pruning_curve(const Decoder<float>&, const std::vector<Batch>&,
                                    const std::vector<double>&, const PruningOptions&);
template PruningCurve pruning_curve(const Decoder<double>&, const std::vector<Batch>&,
                                    const std::vector<double>&, const PruningOptions&);

}  // namespace headwise::study
