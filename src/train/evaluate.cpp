#include "headwise/train/evaluate.hpp"

#include <algorithm>
#include <cmath>

#include "headwise/data/text.hpp"
#include "headwise/nn/non_finite.hpp"

namespace headwise {
namespace {

/// Seed of the evaluation batches: the same for every run.
constexpr std::uint64_t kEvaluationSeed = 0x6865616477697365;

/// One sequence: the inputs from `begin`, the targets one on.
Batch window(const std::vector<Id>& tokens, Index begin, Index length) {
  const auto from = tokens.begin() + begin;
  return {Ids({1, length}, {from, from + length}), Ids({1, length}, {from + 1, from + 1 + length})};
}

/// The loss of a batch, given by what computed it. Throws NotFinite when it is not finite.
template <Real T>
double finite(const Decoder<T>& model, const Batch& batch, const Var<T>& loss) {
  const auto value = static_cast<double>(loss.item());
  if (std::isfinite(value)) [[likely]]
    return value;
  Decoder<T> copy = model;  // it shares the weights
  const std::optional<NonFinite> found = first_non_finite<T>(
      copy, [&](const Ctx<T>& ctx) { return copy.loss(ctx, batch.inputs, batch.targets); });
  throw NotFinite(fmt::format("evaluation: the loss is {}; {}", value,
                              found ? found->describe() : "where it arose is not known"));
}

template <Real T>
double loss_of(const Decoder<T>& model, const Batch& batch) {
  return finite(model, batch, model.loss({}, batch.inputs, batch.targets));
}

/// Counts the answers of a batch.   logits (B,T,V), targets (B,T).
template <Real T>
void count(const Tensor<T>& logits, const Ids& targets, Accuracy accuracy, Loss& to) {
  const Index time = targets.shape[1], vocab = logits.shape().last();
  const T* row = logits.data();
  auto target = targets.values.begin();
  for (Index b = 0; b < targets.shape[0]; ++b) {
    Index asked = 0, right = 0;
    for (Index t = 0; t < time; ++t, row += vocab, ++target) {
      if (*target == kIgnore) continue;
      ++asked;
      right += std::max_element(row, row + vocab) - row == *target;
    }
    if (asked == 0) continue;
    const bool whole = accuracy == Accuracy::whole;
    to.answers += whole ? 1 : asked;
    to.right += whole ? right == asked : right;
  }
}

}  // namespace

template <Real T>
std::optional<Loss> evaluate(const Decoder<T>& model, const Source& source, Index batch,
                             Index batches, FunctionRef<bool()> keep_going) {
  const Ctx<T> ctx;
  const std::optional<Accuracy> accuracy = source.accuracy();
  Rng rng(kEvaluationSeed);
  const Index size = source.valid_size(), whole = (size + batch - 1) / batch;
  Loss all{.each_once = 0 < whole && whole <= batches};
  double total = 0;
  for (Index i = 0; i < (all.each_once ? whole : batches); ++i) {
    if (!keep_going()) return std::nullopt;
    const Batch b = all.each_once ? source.valid_range(i * batch, std::min(batch, size - i * batch))
                                  : source.valid(batch, rng);
    const Index counts = counted(b.targets);
    double loss = 0;
    if (accuracy) {
      const Var<T> logits = model(ctx, b.inputs);
      loss = finite(model, b, cross_entropy(logits, b.targets));
      count(logits.value(), b.targets, *accuracy, all);
    } else {
      loss = loss_of(model, b);
    }
    total += loss * static_cast<double>(counts);
    all.tokens += counts;
  }
  require<Error>(all.tokens > 0, "evaluation: no label of {} batches counts", batches);
  all.mean = total / static_cast<double>(all.tokens);
  if (accuracy)
    all.accuracy =
        static_cast<double>(all.right) / static_cast<double>(std::max<Index>(1, all.answers));
  return all;
}

template <Real T>
Loss evaluate(const Decoder<T>& model, const Source& source, Index batch, Index batches) {
  return *evaluate(model, source, batch, batches, [] { return true; });
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
  return {.mean = total / static_cast<double>(predicted), .tokens = predicted};
}

#define HEADWISE_INSTANTIATE(T)                                                         \
  template std::optional<Loss> evaluate(const Decoder<T>&, const Source&, Index, Index, \
                                        FunctionRef<bool()>);                           \
  template Loss evaluate(const Decoder<T>&, const Source&, Index, Index);               \
  template Loss evaluate_all(const Decoder<T>&, const std::vector<Id>&);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise
