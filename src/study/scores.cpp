#include "headwise/study/scores.hpp"

#include <algorithm>
#include <cmath>

#include "headwise/core/parallel.hpp"

namespace headwise::study {
namespace {

double real(Index n) { return static_cast<double>(n); }

/// The keys that a sequence's queries are asked about, the same for every head.
struct Keys {
  std::vector<std::vector<Index>> copies;  ///< of each token, its earlier occurrences

  explicit Keys(std::span<const Id> ids) : copies(ids.size()) {
    std::map<Id, std::vector<Index>> seen;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      copies[i] = seen[ids[i]];
      seen[ids[i]].push_back(static_cast<Index>(i));
    }
  }
};

/// A mean over queries of the weight on some keys.
struct KeyMean {
  double value = 0, chance = 0;
  Index queries = 0;
  ShuffleBound bound;

  void add(double weight, double keys, double seen, const ShuffleBound::Cumulants& query) {
    value += weight;
    chance += keys / seen;
    ++queries;
    bound.add(query, keys);
  }
  void add(const KeyMean& o) {
    value += o.value;
    chance += o.chance;
    queries += o.queries;
    bound.add(o.bound);
  }
  [[nodiscard]] Measure measure(bool bounds) const {
    Measure m{.value = value / real(queries), .chance = chance / real(queries)};
    if (bounds) m.p = bound.p(value);
    return m;
  }
};

/// A mean over queries of something about the whole row.
struct RowMean {
  double value = 0, chance = 0;

  void add(double x, double by_chance) { value += x, chance += by_chance; }
  void add(const RowMean& o) { add(o.value, o.chance); }
  [[nodiscard]] Measure measure(Index queries) const {
    return {.value = value / real(queries), .chance = chance / real(queries)};
  }
};

/// What one head's patterns add up to.
class Sums {
 public:
  explicit Sums(Index time) : offsets_(static_cast<std::size_t>(time / 2 + 1)) {}

  template <Real T>
  void add(const T* pattern, Index stride, const Keys& keys, bool bounds);
  void add(const Sums& o);
  [[nodiscard]] Scores scores(bool bounds) const;

 private:
  KeyMean previous_, current_, first_, duplicate_, prefix_, locality_;
  RowMean entropy_, confidence_, distance_;
  std::vector<KeyMean> offsets_;
};

template <Real T>
void Sums::add(const T* pattern, Index stride, const Keys& keys, bool bounds) {
  ShuffleBound::Cumulants query{};
  for (Index i = 0; i < static_cast<Index>(keys.copies.size()); ++i) {
    const T* const row = pattern + i * stride;
    const std::span<const T> seen(row, static_cast<std::size_t>(i + 1));
    const auto weight = [&](Index j) { return static_cast<double>(row[j]); };
    const double n = real(i + 1);
    if (bounds) query = ShuffleBound::of(seen);

    current_.add(weight(i), 1, n, query);
    first_.add(weight(0), 1, n, query);
    if (i >= 1) previous_.add(weight(i - 1), 1, n, query);
    for (Index k = 0; k < std::min<Index>(i + 1, std::ssize(offsets_)); ++k)
      offsets_[static_cast<std::size_t>(k)].add(weight(i - k), 1, n, query);

    const auto& copies = keys.copies[static_cast<std::size_t>(i)];
    if (!copies.empty()) {
      double on_copies = 0, on_followers = 0;
      for (const Index j : copies) on_copies += weight(j), on_followers += weight(j + 1);
      duplicate_.add(on_copies, real(std::ssize(copies)), n, query);
      prefix_.add(on_followers, real(std::ssize(copies)), n, query);
    }

    double near = 0, entropy = 0, most = 0, distance = 0;
    for (Index j = 0; j <= i; ++j) {
      const double a = weight(j);
      if (i - j < kWindow) near += a;
      if (a > 0) entropy -= a * std::log(a);
      most = std::max(most, a);
      distance += a * real(i - j);
    }
    locality_.add(near, std::min(real(kWindow), n), n, query);
    entropy_.add(entropy, std::log(n));
    confidence_.add(most, 1 / n);
    distance_.add(distance, real(i) / 2);
  }
}

void Sums::add(const Sums& o) {
  previous_.add(o.previous_);
  current_.add(o.current_);
  first_.add(o.first_);
  duplicate_.add(o.duplicate_);
  prefix_.add(o.prefix_);
  locality_.add(o.locality_);
  entropy_.add(o.entropy_);
  confidence_.add(o.confidence_);
  distance_.add(o.distance_);
  for (std::size_t k = 0; k < offsets_.size(); ++k) offsets_[k].add(o.offsets_[k]);
}

Scores Sums::scores(bool bounds) const {
  Scores all;
  const auto keep = [&](Score score, const KeyMean& mean) {
    if (mean.queries > 0) all[score] = mean.measure(bounds);
  };
  keep(Score::previous_token, previous_);
  keep(Score::current_token, current_);
  keep(Score::first_token, first_);
  keep(Score::duplicate_token, duplicate_);
  keep(Score::prefix_matching, prefix_);
  keep(Score::locality, locality_);
  all[Score::entropy] = entropy_.measure(current_.queries);
  all[Score::confidence] = confidence_.measure(current_.queries);
  all[Score::mean_distance] = distance_.measure(current_.queries);
  Measure best{.value = -1};
  Index tried = 0;
  for (const KeyMean& offset : offsets_) {
    if (offset.queries == 0) break;
    Measure m = offset.measure(bounds);
    m.offset = tried++;
    if (m.offset == 0 || m.value > best.value) best = m;
  }
  if (bounds) best.p = std::min(1.0, real(tried) * *best.p);
  all[Score::fixed_offset] = best;
  return all;
}

/// (1 + those at least as far out) / (1 + all), of both sides the smaller, doubled.
double rank_p(double value, const std::vector<double>& others) {
  const auto share = [&](auto as_far) {
    return (1 + real(std::count_if(others.begin(), others.end(), as_far))) /
           (1 + real(std::ssize(others)));
  };
  return std::min(1.0, 2 * std::min(share([&](double x) { return x >= value; }),
                                    share([&](double x) { return x <= value; })));
}

}  // namespace

template <Real T>
std::vector<Scores> pattern_scores(const Decoder<T>& model, const Sequences& sequences,
                                   bool bounds) {
  const Index heads = model.config.heads, time = sequences.time();
  std::vector<Keys> keys;
  for (Index b = 0; b < sequences.count(); ++b) keys.emplace_back(sequences.ids(b));
  std::vector<Sums> sums(static_cast<std::size_t>(model.config.layers * heads), Sums(time));
  for_each_pattern<T>(model, sequences, [&](const SeenLayer<T>& seen) {
    const Index block = seen.pattern.shape()[0];
    std::vector<Sums> parts(static_cast<std::size_t>(block * heads), Sums(time));
    parallel_for(block * heads, 1, [&](Index begin, Index end) {
      for (Index n = begin; n < end; ++n)
        parts[static_cast<std::size_t>(n)].add(
            seen.pattern.data() + n * time * time, time,
            keys[static_cast<std::size_t>(seen.first + n / heads)], bounds);
    });
    for (Index n = 0; n < block * heads; ++n)
      sums[static_cast<std::size_t>(seen.layer * heads + n % heads)].add(
          parts[static_cast<std::size_t>(n)]);
  });
  std::vector<Scores> all;
  for (const Sums& s : sums) all.push_back(s.scores(bounds));
  return all;
}

template <Real T>
Scores pattern_scores(std::span<const T> pattern, std::span<const Id> ids) {
  const Index time = std::ssize(ids);
  require(time >= 1 && std::ssize(pattern) == time * time,
          "pattern scores: {} weights are not a pattern of {} tokens", pattern.size(), time);
  Sums sums(time);
  sums.add(pattern.data(), time, Keys(ids), true);
  return sums.scores(true);
}

void compare_with_untrained(std::vector<Scores>& heads, const std::vector<Scores>& same,
                            const std::vector<Scores>& untrained) {
  require(heads.size() == same.size(), "compare_with_untrained: {} heads, and {} of the same model",
          heads.size(), same.size());
  for (const Score score : {Score::entropy, Score::confidence, Score::mean_distance}) {
    std::vector<double> others;
    for (const Scores& head : untrained) others.push_back(head.at(score).value);
    for (std::size_t i = 0; i < heads.size(); ++i)
      heads[i].at(score).p = rank_p(same[i].at(score).value, others);
  }
}

#define HEADWISE_INSTANTIATE(T)                                                           \
  template std::vector<Scores> pattern_scores(const Decoder<T>&, const Sequences&, bool); \
  template Scores pattern_scores(std::span<const T>, std::span<const Id>);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise::study
