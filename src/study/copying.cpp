#include "headwise/study/copying.hpp"

#include <algorithm>

#include "headwise/study/raised.hpp"

namespace headwise::study {
namespace {

struct Copied {
  double value = 0, chance = 0;
  Index queries = 0;
  ShuffleBound bound;

  /// The queries of a sequence that begins with `first`.
  void add(const Raised& raised, Id first) {
    const auto kinds = static_cast<Index>(raised.tokens.size());
    for (Index i = 0; i < std::ssize(raised.attended); ++i) {
      const auto shares = raised.shares.values().subspan(static_cast<std::size_t>(i * kinds),
                                                         static_cast<std::size_t>(kinds));
      const auto attended = static_cast<std::size_t>(raised.attended[static_cast<std::size_t>(i)]);
      if (raised.tokens[attended] == first) continue;
      if (std::all_of(shares.begin(), shares.end(), [](double x) { return x == 0; })) continue;
      value += shares[attended];
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
  std::vector<Copied> sums(static_cast<std::size_t>(model.config.layers * heads));
  for_each_pattern<T>(model, sequences, [&](const SeenLayer<T>& seen) {
    const Sequences part = sequences.range(seen.first, seen.first + seen.pattern.shape()[0]);
    const auto raised =
        raised_tokens(model, seen.layer, part.batch.inputs, seen.pattern, seen.z, part.lengths);
    for (Index h = 0; h < heads; ++h)
      for (Index b = 0; b < part.count(); ++b)
        sums[static_cast<std::size_t>(seen.layer * heads + h)].add(
            raised[static_cast<std::size_t>(h)][static_cast<std::size_t>(b)], part.ids(b)[0]);
  });
  std::vector<std::optional<Measure>> all;
  for (const Copied& sum : sums) all.push_back(sum.measure());
  return all;
}

template std::vector<std::optional<Measure>> copying_scores(const Decoder<float>&,
                                                            const Sequences&);
template std::vector<std::optional<Measure>> copying_scores(const Decoder<double>&,
                                                            const Sequences&);

}  // namespace headwise::study
