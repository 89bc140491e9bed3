#include "headwise/study/sequences.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "headwise/study/head.hpp"
#include "headwise/study/recording.hpp"
#include "study/targets.hpp"

namespace headwise::study {
namespace {

/// Share of the kinds of tokens that is left aside at either end, the commonest and the rarest.
constexpr double kAside = 0.04;

Ids rows(const Ids& ids, Index begin, Index end) {
  ids.check("sequences");
  const Index time = ids.shape[1];
  const auto from = ids.values.begin();
  return {{end - begin, time}, {from + begin * time, from + end * time}};
}

/// The tokens that random sequences are made of.
std::vector<Id> usual_tokens(const Sequences& like, std::optional<Id> first) {
  std::map<Id, Index> seen;
  for (Index b = 0; b < like.count(); ++b)
    for (const Id id : like.ids(b)) ++seen[id];
  if (first) seen.erase(*first);
  std::vector<Id> tokens;
  for (const auto& [id, times] : seen) tokens.push_back(id);
  std::stable_sort(tokens.begin(), tokens.end(), [&](Id a, Id b) { return seen[a] > seen[b]; });
  const auto aside = static_cast<Index>(kAside * static_cast<double>(tokens.size()));
  tokens = {tokens.begin() + aside, tokens.end() - aside};
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

/// Sequences with the lengths that their targets give them.
Sequences with_lengths(Batch batch) {
  Sequences all{std::move(batch), {}};
  for (Index b = 0; b < all.count(); ++b)
    all.lengths.push_back(std::max<Index>(1, length_read(all.batch.targets, b)));
  return all;
}

/// Up to `count` windows of a text, evenly spread, none of which overlaps another.
Sequences spread_windows(const std::vector<Id>& tokens, Index count, Index time) {
  if (std::ssize(tokens) <= time) return one_sequence(tokens);
  const Index room = std::ssize(tokens) - 1;
  const Index windows = std::clamp<Index>(room / time, 1, count);
  std::vector<Id> inputs, targets;
  for (Index n = 0; n < windows; ++n) {
    const auto from = tokens.begin() + (windows == 1 ? 0 : n * (room - time) / (windows - 1));
    inputs.insert(inputs.end(), from, from + time);
    targets.insert(targets.end(), from + 1, from + 1 + time);
  }
  return with_lengths(
      {Ids({windows, time}, std::move(inputs)), Ids({windows, time}, std::move(targets))});
}

}  // namespace

std::span<const Id> Sequences::ids(Index sequence) const {
  require(sequence >= 0 && sequence < count() && std::ssize(lengths) == count(),
          "sequences: no sequence {} among {} with {} lengths", sequence, count(), lengths.size());
  const Index length = lengths[static_cast<std::size_t>(sequence)];
  require(length >= 0 && length <= time(), "sequences: length {} of sequence {} is not in [0, {}]",
          length, sequence, time());
  batch.inputs.check("sequences");
  return std::span<const Id>(batch.inputs.values)
      .subspan(static_cast<std::size_t>(sequence * time()), static_cast<std::size_t>(length));
}

Sequences Sequences::range(Index begin, Index end) const {
  require(begin >= 0 && begin <= end && end <= count() && std::ssize(lengths) == count(),
          "sequences: [{}, {}) is not within {} sequences with {} lengths", begin, end, count(),
          lengths.size());
  return {{rows(batch.inputs, begin, end), rows(batch.targets, begin, end)},
          {lengths.begin() + begin, lengths.begin() + end}};
}

Sequences distinct(const Sequences& sequences) {
  const Index time = sequences.time();
  std::set<std::vector<Id>> seen;
  Sequences kept;
  std::vector<Id> inputs, targets;
  for (Index b = 0; b < sequences.count(); ++b) {
    const auto ids = sequences.ids(b);
    if (!seen.emplace(ids.begin(), ids.end()).second) continue;
    const auto row = [&](const Ids& from, std::vector<Id>& to) {
      to.insert(to.end(), from.values.begin() + b * time, from.values.begin() + (b + 1) * time);
    };
    row(sequences.batch.inputs, inputs);
    row(sequences.batch.targets, targets);
    kept.lengths.push_back(sequences.lengths[static_cast<std::size_t>(b)]);
  }
  const Shape shape{std::ssize(kept.lengths), time};
  kept.batch = {Ids(shape, std::move(inputs)), Ids(shape, std::move(targets))};
  return kept;
}

Sequences data_sequences(const Source& source, Index count, std::uint64_t seed) {
  if (const auto* text = dynamic_cast<const TextSource*>(&source))
    return distinct(spread_windows(text->parts().valid.ids(), count, text->context()));
  const Index all = source.valid_size();
  if (0 < all && all <= count) return distinct(with_lengths(source.valid_range(0, all)));
  Rng rng = stream(seed, Purpose::study);
  return distinct(with_lengths(source.valid(count, rng)));
}

Sequences one_sequence(std::vector<Id> ids) {
  require<DataError>(ids.size() >= 2, "text: got {} tokens, need at least 2", ids.size());
  const auto time = static_cast<Index>(ids.size());
  std::vector<Id> next(ids.begin() + 1, ids.end());
  next.push_back(kIgnore);
  return {{Ids({1, time}, std::move(ids)), Ids({1, time}, std::move(next))}, {time}};
}

std::optional<Sequences> repeated_sequences(const Sequences& like, Index count, Index time,
                                            std::optional<Id> first, std::uint64_t seed) {
  const std::vector<Id> tokens = usual_tokens(like, first);
  const Index before = first ? 1 : 0, kinds = static_cast<Index>(tokens.size());
  if (kinds < 2 || time < 5) return std::nullopt;
  const Index most = std::min(kinds, (time - before) / 2),
              least = std::min<Index>(8, std::max<Index>(2, most / 2));
  std::vector<Id> inputs, targets;
  for (Index b = 0; b < count; ++b) {
    Rng rng = stream(seed, Purpose::study, b + 1);
    const Index n = least + rng.below(most - least + 1);
    const std::vector<Index> order = rng.permutation(kinds);
    const auto token = [&](Index i) -> Id {  // the token at place i, behind the first
      return tokens[static_cast<std::size_t>(order[static_cast<std::size_t>(i % n)])];
    };
    if (first) inputs.push_back(*first), targets.push_back(kIgnore);
    for (Index i = 0; i < time - before; ++i) {
      inputs.push_back(token(i));
      targets.push_back(i < n ? kIgnore : token(i + 1));
    }
  }
  return distinct({{Ids({count, time}, std::move(inputs)), Ids({count, time}, std::move(targets))},
                   std::vector<Index>(static_cast<std::size_t>(count), time)});
}

template <Real T>
void for_each_pattern(const Decoder<T>& model, const Sequences& sequences,
                      FunctionRef<void(const SeenLayer<T>&)> see) {
  const Index block = std::max<Index>(1, kTokensAtOnce / sequences.time());
  std::vector<Var<T>> streams;
  for (Index at = 0; at < sequences.count(); at += block)
    streams.push_back(
        model.embed({}, rows(sequences.batch.inputs, at, std::min(sequences.count(), at + block))));
  for (Index layer = 0; layer < model.config.layers; ++layer)
    for (std::size_t n = 0; n < streams.size(); ++n) {
      const std::string pattern = attention_name(layer, "pattern"), z = attention_name(layer, "z");
      Recording<T> seen({pattern, z});
      const Ctx<T> root{.probe = &seen};
      streams[n] =
          model.blocks[static_cast<std::size_t>(layer)](root.in("blocks", layer), streams[n]);
      see({layer, static_cast<Index>(n) * block, seen[pattern], seen[z]});
    }
}

#define HEADWISE_INSTANTIATE(T)                                       \
  template void for_each_pattern(const Decoder<T>&, const Sequences&, \
                                 FunctionRef<void(const SeenLayer<T>&)>);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise::study
