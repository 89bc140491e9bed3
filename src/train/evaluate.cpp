#include "headwise/train/evaluate.hpp"

#include <algorithm>

#include "headwise/data/text.hpp"

namespace headwise {
namespace {

/// Seed of the evaluation batches: the same for every run.
constexpr std::uint64_t kEvaluationSeed = 0x6865616477697365;

/// One sequence: the inputs from `begin`, the targets one on.
Batch window(const std::vector<Id>& tokens, Index begin, Index length) {
  const auto from = tokens.begin() + begin;
  return {Ids({1, length}, {from, from + length}), Ids({1, length}, {from + 1, from + 1 + length})};
}

template <Real T>
double loss_of(const Decoder<T>& model, const Batch& batch) {
  const Ctx<T> ctx;
  return static_cast<double>(model.loss(ctx, batch.inputs, batch.targets).item());
}

}  // namespace

template <Real T>
std::optional<Loss> evaluate(const Decoder<T>& model, const std::vector<Id>& tokens, Index batch,
                             Index batches, FunctionRef<bool()> keep_going) {
  Rng rng(kEvaluationSeed);
  Loss loss;
  for (Index i = 0; i < batches; ++i) {
    if (!keep_going()) return std::nullopt;
    const Batch b = random_batch(tokens, batch, model.config.context, rng);
    loss.mean += loss_of(model, b);
    loss.tokens += b.targets.shape.size();
  }
  loss.mean /= static_cast<double>(batches);
  return loss;
}

template <Real T>
Loss evaluate(const Decoder<T>& model, const std::vector<Id>& tokens, Index batch, Index batches) {
  return *evaluate(model, tokens, batch, batches, [] { return true; });
}

template <Real T>
Loss evaluate_all(const Decoder<T>& model, const std::vector<Id>& tokens) {
  const Index predicted = static_cast<Index>(tokens.size()) - 1;
  require<DataError>(predicted >= 1, "text: {} tokens, need at least 2 to predict one",
                     tokens.size());
  double total = 0;
  for (Index at = 0; at < predicted; at += model.config.context) {
    const Index length = std::min(model.config.context, predicted - at);
    total += loss_of(model, window(tokens, at, length)) * static_cast<double>(length);
  }
  return {total / static_cast<double>(predicted), predicted};
}

#define HEADWISE_INSTANTIATE(T)                                                                  \
  template std::optional<Loss> evaluate(const Decoder<T>&, const std::vector<Id>&, Index, Index, \
                                        FunctionRef<bool()>);                                    \
  template Loss evaluate(const Decoder<T>&, const std::vector<Id>&, Index, Index);               \
  template Loss evaluate_all(const Decoder<T>&, const std::vector<Id>&);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise
