#include "headwise/study/copying.hpp"

#include <algorithm>

#include "headwise/study/raised.hpp"
#include "headwise/study/recording.hpp"

namespace headwise::study {
namespace {

/// Tokens that go through the model at once.
constexpr Index kAtOnce = 2048;

struct Copied {
  double value = 0, chance = 0;
  Index queries = 0;
  ShuffleBound bound;

  /// The queries of a sequence.
  void add(const Raised& raised) {
    const auto kinds = static_cast<Index>(raised.tokens.size());
    for (Index i = 0; i < std::ssize(raised.attended); ++i) {
      const auto shares = raised.shares.values().subspan(static_cast<std::size_t>(i * kinds),
                                                         static_cast<std::size_t>(kinds));
      if (std::all_of(shares.begin(), shares.end(), [](double x) { return x == 0; })) continue;
      value += shares[static_cast<std::size_t>(raised.attended[static_cast<std::size_t>(i)])];
      chance += 1 / static_cast<double>(kinds);
      ++queries;
      bound.add(ShuffleBound::of(shares));
    }
  }
  [[nodiscard]] std::optional<Measure> measure() const {
    if (queries == 0) return std::nullopt;
    const auto n = static_cast<double>(queries);
    return Measure{.value = value / n, .chance = chance / n, .p = bound.p(value)};
  }
};

}  // namespace

template <Real T>
std::vector<std::optional<Measure>> copying_scores(const Decoder<T>& model,
                                                   const Sequences& sequences) {
  const Index heads = model.config.heads;
  std::set<std::string, std::less<>> names;
  for (Index layer = 0; layer < model.config.layers; ++layer)
    for (const char* what : {"pattern", "z"}) names.insert(attention_name(layer, what));
  std::vector<Copied> sums(static_cast<std::size_t>(model.config.layers * heads));
  const Index block = std::max<Index>(1, kAtOnce / sequences.time());
  for (Index at = 0; at < sequences.count(); at += block) {
    const Sequences part = sequences.range(at, std::min(sequences.count(), at + block));
    Recording<T> seen(names);
    model({.probe = &seen}, part.batch.inputs);
    for (Index layer = 0; layer < model.config.layers; ++layer) {
      const auto raised =
          raised_tokens(model, layer, part.batch.inputs, seen[attention_name(layer, "pattern")],
                        seen[attention_name(layer, "z")], part.lengths);
      for (Index h = 0; h < heads; ++h)
        for (Index b = 0; b < part.count(); ++b)
          sums[static_cast<std::size_t>(layer * heads + h)].add(
              raised[static_cast<std::size_t>(h)][static_cast<std::size_t>(b)]);
    }
  }
  std::vector<std::optional<Measure>> all;
  for (const Copied& sum : sums) all.push_back(sum.measure());
  return all;
}

template std::vector<std::optional<Measure>> copying_scores(const Decoder<float>&,
                                                            const Sequences&);
template std::vector<std::optional<Measure>> copying_scores(const Decoder<double>&,
                                                            const Sequences&);

}  // namespace headwise::study
