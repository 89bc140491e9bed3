// Models whose heads do something known, and what an ablation should give, the long way.
#pragma once

#include <vector>

#include "headwise/study/ablation.hpp"
#include "ops/cross_entropy.hpp"
#include "support/models.hpp"

namespace headwise::test {

/// Sequences of random tokens; every fifth position has no target.
inline Batch random_sequences(Index sequences, const ModelConfig& c, std::uint64_t seed) {
  Batch batch{random_ids({sequences, c.context}, c.vocab, seed),
              random_ids({sequences, c.context}, c.vocab, seed + 1)};
  for (std::size_t i = 2; i < batch.targets.values.size(); i += 5)
    batch.targets.values[i] = kIgnore;
  return batch;
}

/// The batch's sequences [begin, end).
inline Batch sequences(const Batch& batch, Index begin, Index end) {
  const auto part = [&](const Ids& ids) {
    const Index t = ids.shape[1];
    const auto from = ids.values.begin();
    return Ids({end - begin, t}, {from + begin * t, from + end * t});
  };
  return {part(batch.inputs), part(batch.targets)};
}

/// Sets a parameter.
template <Real T>
void set(Param<T>& p, const std::vector<double>& values) {
  REQUIRE(p.value.size() == static_cast<Index>(values.size()));
  std::transform(values.begin(), values.end(), p.value.data(),
                 [](double x) { return static_cast<T>(x); });
}

/// A decoder of width 2, two tokens and two heads of one number each. Every token's stream is
/// (1,-1), and head h adds push[h] (-1,1) to it, wherever it looks. The last norm leaves the sign s
/// of the first number (to 1 + 1e-5), and the logits are (s,-s): with it, the loss for target 1 is
/// log(1 + e^(2s)).
template <Real T>
Decoder<T> pushing_decoder(double push_0, double push_1) {
  const ModelConfig config{.vocab = 2,
                           .layers = 1,
                           .heads = 2,
                           .width = 2,
                           .context = 3,
                           .attention_only = true,
                           .tie = false};
  Rng rng(1);
  Decoder<T> model(config, rng);
  set(model.tok.weight, {1, -1, 1, -1});
  set(model.pos.weight, {0, 0, 0, 0, 0, 0});
  set(model.blocks[0].attn.w_v.weight, {0, 0, 0, 0});
  set(model.blocks[0].attn.w_v.bias, {push_0, push_1});  // z: rows of a pattern sum to 1
  set(model.blocks[0].attn.w_o.weight, {-1, -1, 1, 1});
  set(model.head->weight, {1, 0, 0, 1});
  return model;
}

/// What a last norm leaves of a stream (1,-1).
inline const double kNormed = 1 / std::sqrt(1 + 1e-5);

/// Sequences of zeros, of which every token should have been a one.
inline Batch all_ones(Index sequences) {
  const auto filled = [&](Id id) {
    return Ids({sequences, 3}, std::vector<Id>(static_cast<std::size_t>(3 * sequences), id));
  };
  return {filled(0), filled(1)};
}

/// Puts edit(name, x) in the place of every activation and pattern of a whole forward pass.
template <Real T, class F>
struct Editing : Probe<T> {
  F edit;
  explicit Editing(F f) : edit(std::move(f)) {}
  [[nodiscard]] bool wants(std::string_view) const override { return true; }
  Var<T> at(std::string_view name, Var<T> x) override {
    return Var<T>(edit(std::string(name), x.value()));
  }
  bool pattern(std::string_view name, Tensor<T>& p) override {
    p = edit(std::string(name), p);
    return true;
  }
};

/// Sum of the losses of each sequence, over a whole forward pass in which edit(name, x) stands in
/// the place of each activation x.
template <Real T, class F>
std::vector<double> losses_with(const Decoder<T>& model, const Batch& batch, F edit) {
  Editing<T, F> probe(edit);
  const Tensor<T> logits = infer<T>(model, batch.inputs, &probe);
  const auto time = static_cast<std::size_t>(batch.inputs.shape[1]);
  std::vector<double> total(batch.targets.values.size() / time);
  for (std::size_t i = 0; i < batch.targets.values.size(); ++i) {
    double lse = 0;
    total[i / time] += row_loss(logits.data() + static_cast<Index>(i) * logits.shape().last(),
                                logits.shape().last(), batch.targets.values[i], lse);
  }
  return total;
}

/// The rise of the loss through edit, in nats a token that counts.
template <Real T, class F>
double rise_with(const Decoder<T>& model, const Batch& batch, F edit) {
  const auto nothing = [](const std::string&, const Tensor<T>& x) { return x; };
  const std::vector<double> before = losses_with(model, batch, nothing),
                            after = losses_with(model, batch, edit);
  double rise = 0;
  for (std::size_t i = 0; i < before.size(); ++i) rise += after[i] - before[i];
  return rise / static_cast<double>(counted(batch.targets));
}

/// z with value(sequence, position, number) in the columns of a head; every other x as it is.
template <Real T, class F>
Tensor<T> put(const std::string& name, Tensor<T> x, const study::HeadSet& heads,
              const ModelConfig& c, F value) {
  for (const study::HeadId h : heads) {
    if (name != study::attention_name(h.layer, "z")) continue;
    const Index d = c.width / c.heads, time = x.shape()[1];
    T* out = x.data();
    for (Index b = 0; b < x.shape()[0]; ++b)
      for (Index t = 0; t < time; ++t)
        for (Index j = h.head * d; j < (h.head + 1) * d; ++j)
          out[(b * time + t) * c.width + j] = value(b, t, j);
  }
  return x;
}

}  // namespace headwise::test
