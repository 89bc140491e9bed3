#include "cli/study_budget.hpp"

#include <algorithm>

namespace headwise::cli {
namespace {

using study::Sequences, study::Ways;

/// Floating-point operations: some 20 seconds of one core.
constexpr double kAblationWork = 1.9e12;
/// As many sequences as tell a spread.
constexpr Index kFewest = 4;
/// What longer sequences are cut to, and the points of a pruning curve that is cut short.
constexpr Index kLengths[] = {256, 128}, kFewerPoints = 5;
/// Numbers of patterns that are kept of the tokens that go through the model at once.
constexpr Index kPatternsAtOnce = Index{1} << 25;

/// Of one sequence, about.
double work(const ModelConfig& c, Index weights, const AblationPlan& plan) {
  const double ways = plan.ways == Ways::all ? 4 : 2;
  const double singles = ways * static_cast<double>(c.layers * c.heads) / 2;  // half the layers
  const double groups = 20, pruning = 4.0 * static_cast<double>(plan.points - 2) + 2, gates = 3;
  const double attention = 4.0 * static_cast<double>(c.layers * plan.length * c.width);
  return (singles + groups + pruning + gates) * (2.0 * static_cast<double>(weights) + attention) *
         static_cast<double>(plan.length);
}

/// The first n sequences, each of no more than t tokens: those that are distinct then.
Sequences cut(const Sequences& data, Index n, Index t) {
  const auto part = [&](const Ids& ids) {
    std::vector<Id> values;
    for (Index b = 0; b < n; ++b) {
      const auto row = ids.values.begin() + b * data.time();
      values.insert(values.end(), row, row + t);
    }
    return Ids({n, t}, std::move(values));
  };
  Sequences first{{part(data.batch.inputs), part(data.batch.targets)}, {}};
  for (Index b = 0; b < n; ++b)
    first.lengths.push_back(std::min(t, data.lengths[static_cast<std::size_t>(b)]));
  return distinct(first);
}

bool asks(const Ids& targets, Index sequence, Index length) {
  const auto row = targets.values.begin() + sequence * targets.shape[1];
  return std::any_of(row, row + length, [](Id id) { return id != kIgnore; });
}

/// Whether no sequence loses all its targets.
bool can_cut(const Sequences& data, Index length) {
  for (Index b = 0; b < data.count(); ++b)
    if (asks(data.batch.targets, b, data.time()) && !asks(data.batch.targets, b, length))
      return false;
  return true;
}

}  // namespace

AblationPlan plan_ablation(const ModelConfig& config, Index weights, const Sequences& data) {
  const Index fewest = std::min(kFewest, data.count());
  AblationPlan plan{.sequences = fewest, .length = data.time()};
  const auto affords = [&] {
    const double most = kAblationWork / work(config, weights, plan);
    plan.sequences = static_cast<Index>(std::min(static_cast<double>(data.count()), most));
    const bool enough = plan.sequences >= fewest;
    plan.sequences = std::max(plan.sequences, fewest);
    return enough;
  };
  if (affords()) return plan;
  for (const Index length : kLengths)
    if (length < plan.length && can_cut(data, length)) {
      plan.length = length;
      if (affords()) return plan;
    }
  plan.points = kFewerPoints;
  if (affords()) return plan;
  plan.ways = Ways::zero;
  affords();
  return plan;
}

std::vector<Batch> ablated_batches(const ModelConfig& config, const Sequences& data,
                                   const AblationPlan& plan) {
  const Index patterns = config.layers * config.heads * plan.length * plan.length;
  const Index block =
      std::max<Index>(2, std::min(study::kTokensAtOnce / plan.length, kPatternsAtOnce / patterns));
  const Sequences first = cut(data, plan.sequences, plan.length);
  std::vector<Batch> batches;
  for (Index at = 0; at < first.count();) {
    const Index left = first.count() - at;
    const Index take = left - block == 1 ? left : std::min(left, block);
    batches.push_back(first.range(at, at + take).batch);
    at += take;
  }
  return batches;
}

}  // namespace headwise::cli
