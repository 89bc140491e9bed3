#include "headwise/study/ablation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "headwise/core/parallel.hpp"
#include "headwise/study/recording.hpp"
#include "ops/cross_entropy.hpp"
#include "study/columns.hpp"
#include "study/targets.hpp"

namespace headwise::study {
namespace {

Index first_layer(const Ablation& a) {
  return std::min_element(a.heads.begin(), a.heads.end())->layer;
}

/// What the ablations need of the unchanged model's run over a batch.
std::set<std::string, std::less<>> needed(const std::vector<Ablation>& ablations, Index layers) {
  std::set<std::string, std::less<>> names;
  for (const Ablation& a : ablations) {
    if (a.heads.empty()) continue;
    const Index first = first_layer(a);
    names.insert(stream_name(first));
    names.insert(attention_name(first, "z"));
    if (a.patterns == Patterns::frozen)
      for (Index i = first + 1; i < layers; ++i) names.insert(attention_name(i, "pattern"));
    if (a.instead == Instead::resample)
      for (const HeadId h : a.heads) names.insert(attention_name(h.layer, "z"));
  }
  return names;
}

/// A random cycle through n sequences: from each one the next, never itself.
std::vector<Index> cycle(Index n, Rng rng) {
  require<UsageError>(
      n > 1, "ablation: resampling takes z from another sequence, but a batch has {} sequence", n);
  const std::vector<Index> order = rng.permutation(n);
  std::vector<Index> next(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    next[static_cast<std::size_t>(order[i])] = order[(i + 1) % order.size()];
  return next;
}

/// Mean z (C) of each layer over the positions of all sequences that are read. Summed a position at
/// a time, so that batches do not show.
template <Real T>
std::vector<std::vector<T>> mean_z(const Decoder<T>& model, const std::vector<Batch>& batches) {
  const auto c = static_cast<std::size_t>(model.config.width);
  const auto layers = static_cast<std::size_t>(model.config.layers);
  std::vector<std::vector<double>> total(layers, std::vector<double>(c));
  Index rows = 0;
  std::set<std::string, std::less<>> names;
  for (Index i = 0; i < model.config.layers; ++i) names.insert(attention_name(i, "z"));
  for (const Batch& batch : batches) {
    Recording<T> seen(names);
    model({.probe = &seen}, batch.inputs);
    const Index time = batch.inputs.shape[1];
    for (Index b = 0; b < batch.inputs.shape[0]; ++b) {
      const Index length = length_read(batch.targets, b);
      rows += length;
      for (std::size_t i = 0; i < layers; ++i) {
        const Tensor<T>& z = seen[attention_name(static_cast<Index>(i), "z")];
        const auto first = static_cast<std::size_t>(b * time) * c,
                   end = static_cast<std::size_t>(b * time + length) * c;
        for (std::size_t at = first; at < end; ++at)
          total[i][at % c] += static_cast<double>(z.values()[at]);
      }
    }
  }
  std::vector<std::vector<T>> mean(layers, std::vector<T>(c));
  for (std::size_t i = 0; i < layers; ++i)
    for (std::size_t j = 0; j < c; ++j)
      mean[i][j] = static_cast<T>(total[i][j] / static_cast<double>(rows));
  return mean;
}

/// What stands in the place of heads, for one batch.
template <Real T>
struct Stock {
  const Recording<T>& clean;
  const std::vector<std::vector<T>>& mean;  ///< z (C) of each layer; empty where nobody needs it
  const std::vector<Index>& partner;        ///< of each sequence; empty where nobody needs it
};

/// Ablates on the way.
template <Real T>
class Ablating : public Probe<T> {
 public:
  Ablating(const Ablation& what, const Stock<T>& stock, const ModelConfig& config)
      : what_(what), stock_(stock), heads_(config.heads) {
    for (const HeadId h : what.heads) at_[attention_name(h.layer, "z")].push_back(h);
    if (what.patterns == Patterns::frozen)
      for (Index i = first_layer(what) + 1; i < config.layers; ++i)
        at_[attention_name(i, "pattern")];
  }
  [[nodiscard]] bool wants(std::string_view name) const override { return at_.contains(name); }

  Var<T> at(std::string_view name, Var<T> z) override {
    const Index time = z.shape()[1];
    for (const HeadId h : at_.find(name)->second)
      z = with_head(std::move(z), h.head, heads_,
                    [&](Index row, std::span<T> out) { put(name, h, row, time, out); });
    return z;
  }
  bool pattern(std::string_view name, Tensor<T>& p) override {
    p = stock_.clean[name];
    return true;
  }

 private:
  void put(std::string_view name, HeadId h, Index row, Index time, std::span<T> out) const {
    if (what_.instead == Instead::zero) {
      std::fill(out.begin(), out.end(), T(0));
    } else if (what_.instead == Instead::mean) {
      const auto& mean = stock_.mean[static_cast<std::size_t>(h.layer)];
      std::copy_n(mean.begin() + h.head * static_cast<Index>(out.size()), out.size(), out.begin());
    } else {
      const Index other = stock_.partner[static_cast<std::size_t>(row / time)] * time + row % time;
      const std::span<const T> in = head_of_row(stock_.clean[name], other, h.head, heads_);
      std::copy(in.begin(), in.end(), out.begin());
    }
  }

  const Ablation& what_;
  const Stock<T>& stock_;
  Index heads_;
  std::map<std::string, HeadSet, std::less<>> at_;  // of a pattern: none
};

/// The loss of each sequence, summed over its positions that count.   logits (B,T,V).
template <Real T>
std::vector<double> losses(const Tensor<T>& logits, const Ids& targets) {
  const Index vocab = logits.shape().last();
  std::vector<double> total(static_cast<std::size_t>(targets.shape[0]));
  const T* row = logits.data();
  double lse = 0;
  for (std::size_t i = 0; i < targets.values.size(); ++i, row += vocab)
    total[i / static_cast<std::size_t>(targets.shape[1])] +=
        row_loss(row, vocab, targets.values[i], lse);
  return total;
}

/// Adds what one batch has to say: each sequence's loss, and by how much each ablation raises it.
template <Real T>
void add_batch(const Decoder<T>& model, const Batch& batch, const std::vector<Ablation>& ablations,
               const std::vector<std::vector<T>>& mean, const std::vector<Index>& partner,
               Ablated& sums) {
  Recording<T> seen(needed(ablations, model.config.layers));
  const auto clean = losses(model({.probe = &seen}, batch.inputs).value(), batch.targets);
  for (const double loss : clean) sums.loss += loss;
  const std::size_t before = sums.counts.size();
  for (Index b = 0; b < batch.targets.shape[0]; ++b)
    sums.counts.push_back(counted_in(batch.targets, b));
  for (auto& of_ablation : sums.by_sequence) of_ablation.resize(sums.counts.size());
  const Stock<T> stock{seen, mean, partner};
  // Each pass by one thread: passes do not wait for each other, ops of small models would.
  parallel_for(static_cast<Index>(ablations.size()), 1, [&](Index begin, Index) {
    const auto i = static_cast<std::size_t>(begin);
    const Ablation& a = ablations[i];
    if (a.heads.empty()) return;
    Ablating<T> probe(a, stock, model.config);
    const Index first = first_layer(a);
    const Var<T> stream(seen[stream_name(first)]), z(seen[attention_name(first, "z")]);
    const Var<T> logits = model.resume({.probe = &probe}, first, stream, z);
    const std::vector<double> changed = losses(logits.value(), batch.targets);
    for (std::size_t b = 0; b < clean.size(); ++b)
      sums.by_sequence[i][before + b] = changed[b] - clean[b];
  });
}

}  // namespace

double standard_error(const std::vector<double>& sums, const std::vector<Index>& counts) {
  const auto positions = static_cast<double>(std::reduce(counts.begin(), counts.end()));
  const double ratio = std::accumulate(sums.begin(), sums.end(), 0.0) / positions;
  double squares = 0, sequences = 0;
  for (std::size_t s = 0; s < sums.size(); ++s) {
    if (counts[s] == 0) continue;
    const double off = sums[s] - ratio * static_cast<double>(counts[s]);
    squares += off * off;
    ++sequences;
  }
  if (sequences < 2) return std::numeric_limits<double>::quiet_NaN();
  return std::sqrt(sequences / (sequences - 1) * squares) / positions;
}

template <Real T>
Ablated ablate(const Decoder<T>& model, const std::vector<Batch>& batches,
               const std::vector<Ablation>& ablations, std::uint64_t seed) {
  Ablated sums;
  sums.tokens = require_targets("ablation", batches);
  sums.by_sequence.resize(ablations.size());
  for (const Batch& batch : batches) require_labels("ablation", batch.targets, model.config.vocab);
  const auto any = [&](Instead instead) {
    return std::ranges::any_of(ablations, [&](const Ablation& a) { return a.instead == instead; });
  };
  for (const Ablation& a : ablations)
    for (const HeadId h : a.heads) require_head("ablation", h, model.config);

  std::vector<std::vector<T>> mean;
  if (any(Instead::mean)) mean = mean_z(model, batches);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    std::vector<Index> partner;
    if (any(Instead::resample))
      partner = cycle(batches[i].inputs.shape[0],
                      stream(seed, Purpose::resampling, static_cast<Index>(i)));
    add_batch(model, batches[i], ablations, mean, partner, sums);
  }
  const auto tokens = static_cast<double>(sums.tokens);
  sums.loss /= tokens;
  for (const std::vector<double>& of : sums.by_sequence) {
    sums.rises.push_back(std::accumulate(of.begin(), of.end(), 0.0) / tokens);
    sums.errors.push_back(standard_error(of, sums.counts));
  }
  return sums;
}

template Ablated ablate(const Decoder<float>&, const std::vector<Batch>&,
                        const std::vector<Ablation>&, std::uint64_t);
template Ablated ablate(const Decoder<double>&, const std::vector<Batch>&,
                        const std::vector<Ablation>&, std::uint64_t);

}  // namespace headwise::study
