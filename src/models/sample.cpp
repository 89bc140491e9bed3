#include "headwise/models/sample.hpp"

#include <algorithm>

#include "headwise/core/parallel.hpp"

namespace headwise {
namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

template <Real T>
Index room_for(const Decoder<T>& model, const std::vector<std::vector<Id>>& prompts, Index more) {
  require<UsageError>(!prompts.empty(), "sample: there is no prompt");
  require(static_cast<Index>(prompts.size()) <= kFewRows,
          "sample: {} texts side by side, {} at most", prompts.size(), kFewRows);
  std::size_t longest = 0;
  for (const auto& prompt : prompts) {
    require<UsageError>(!prompt.empty(), "sample: the prompt is empty");
    longest = std::max(longest, prompt.size());
  }
  const auto start = std::min(model.config.context, static_cast<Index>(longest));
  return start + std::clamp<Index>(more, 0, model.config.context - start);
}

}  // namespace

template <Real T>
Generator<T>::Generator(const Decoder<T>& model, const std::vector<std::vector<Id>>& prompts,
                        Index more)
    : model_(model),
      texts_(prompts),
      cache_(model.cache(static_cast<Index>(prompts.size()), room_for(model, prompts, more))),
      one_(model.cache(1, cache_[0].capacity())),
      rows_(prompts.size()) {
  for (Index i = 0; i < texts(); ++i) {
    if (i == 0 || texts_[at(i)] != texts_[at(i - 1)]) {
      read(i);
      continue;
    }
    rows_[at(i)] = rows_[at(i - 1)];
    for (std::size_t layer = 0; layer < cache_.size(); ++layer) cache_[layer].copy(i, one_[layer]);
  }
}

template <Real T>
void Generator<T>::read(Index i) {
  const std::vector<Id>& text = texts_[at(i)];
  const Index seen = std::min(static_cast<Index>(text.size()), model_.config.context);
  for (KeyValues<T>& layer : one_) layer.clear(0);
  const Ids window({1, seen}, {text.end() - seen, text.end()});
  rows_[at(i)] = {model_.next({}, window, one_).value(), 0};
  for (std::size_t layer = 0; layer < cache_.size(); ++layer) cache_[layer].copy(i, one_[layer]);
}

template <Real T>
std::span<const T> Generator<T>::logits(Index i) const {
  require(i >= 0 && i < texts(), "sample: no text {} among {}", i, texts());
  const auto [all, row] = rows_[at(i)];
  const auto v = at(model_.config.vocab);
  return all.values().subspan(at(row) * v, v);
}

template <Real T>
void Generator<T>::add(const std::vector<Id>& next) {
  require(static_cast<Index>(next.size()) == texts(), "sample: {} tokens for {} texts", next.size(),
          texts());
  for (Index i = 0; i < texts(); ++i)  // before anything has changed
    require(next[at(i)] >= 0 && next[at(i)] < model_.config.vocab,
            "sample: id {} of text {} is not in [0, {}]", next[at(i)], i, model_.config.vocab - 1);
  const std::vector<Index> lengths = cache_[0].lengths();
  const auto full = [&](Index i) { return lengths[at(i)] == model_.config.context; };
  Index grow = 0;
  for (Index i = 0; i < texts(); ++i) {
    texts_[at(i)].push_back(next[at(i)]);
    grow += full(i) ? 0 : 1;
  }
  if (grow > 0) {
    for (Index i = 0; i < texts(); ++i)  // goes along at the start, and is read again below
      if (full(i))
        for (KeyValues<T>& layer : cache_) layer.clear(i);
    const Tensor<T> logits = model_.next({}, Ids({texts(), 1}, next), cache_).value();
    for (Index i = 0; i < texts(); ++i) rows_[at(i)] = {logits, i};
  }
  for (Index i = 0; i < texts(); ++i)
    if (full(i)) read(i);
}

template <Real T>
std::vector<std::vector<Id>> sample(const Decoder<T>& model,
                                    const std::vector<std::vector<Id>>& prompts, Index count,
                                    const Drawing& drawing, std::span<Rng> rngs, const Each& each) {
  require(rngs.size() == prompts.size(), "sample: {} streams of random numbers for {} prompts",
          rngs.size(), prompts.size());
  std::vector<std::vector<Id>> drawn(prompts.size());
  for (std::size_t first = 0; first < prompts.size(); first += kFewRows) {
    const std::size_t n = std::min<std::size_t>(kFewRows, prompts.size() - first);
    const auto from = prompts.begin() + static_cast<std::ptrdiff_t>(first);
    Generator<T> texts(model, {from, from + static_cast<std::ptrdiff_t>(n)}, count);
    std::vector<Drawer> drawers(n, Drawer(drawing));
    std::vector<Id> next(n);
    std::vector<bool> going(n, true);
    for (Index step = 0; step < count; ++step) {
      if (step > 0) texts.add(next);
      parallel_for(static_cast<Index>(n), 1, [&](Index i, Index) {
        next[at(i)] = drawers[at(i)].draw(texts.logits(i), rngs[first + at(i)]);
      });
      for (std::size_t i = 0; i < n; ++i) {
        if (!going[i]) continue;
        drawn[first + i].push_back(next[i]);
        going[i] = !each || each(static_cast<Index>(first + i), next[i]);
      }
      if (std::find(going.begin(), going.end(), true) == going.end()) break;
    }
  }
  return drawn;
}

template <Real T>
std::vector<Id> sample(const Decoder<T>& model, const std::vector<Id>& prompt, Index count,
                       const Drawing& drawing, Rng& rng, const std::function<bool(Id)>& each) {
  Each one;
  if (each) one = [&](Index, Id id) { return each(id); };
  const std::vector<std::vector<Id>> prompts(1, prompt);
  return sample(model, prompts, count, drawing, std::span(&rng, 1), one)[0];
}

#define HEADWISE_INSTANTIATE(T)                                                              \
  template class Generator<T>;                                                               \
  template std::vector<std::vector<Id>> sample(const Decoder<T>&,                            \
                                               const std::vector<std::vector<Id>>&, Index,   \
                                               const Drawing&, std::span<Rng>, const Each&); \
  template std::vector<Id> sample(const Decoder<T>&, const std::vector<Id>&, Index,          \
                                  const Drawing&, Rng&, const std::function<bool(Id)>&);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise
