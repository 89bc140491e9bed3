// A model whose heads are known: weights set by hand, patterns known in closed form.
#pragma once

#include <cmath>

#include "headwise/models/decoder.hpp"

namespace headwise::test {

/// Two layers of attention alone, five heads each. The stream (C) is [token (V), position (T),
/// token before (V), nothing]: one-hot each. Layer 0: previous token (which writes the token
/// before), first token, current token, and two that look evenly. Layer 1: induction (looks at
/// tokens whose token before is this one), one that looks at the largest token so far and copies
/// it, and three that look evenly.
struct KnownHeads {
  static constexpr Index kVocab = 12, kTime = 40, kHeads = 5, kWidth = 200, kD = kWidth / kHeads;
  static constexpr double kSharp =
      45;  ///< score of the key looked for: exp(-45) is no weight at all
  static constexpr double kSteep =
      1.5;  ///< of the copying head: a score per step of the token's id

  Decoder<double> model;

  KnownHeads() : model(config(), rng()) {
    for_each_param(model, [](const std::string& name, Param<double>& p) {
      const bool gain = name.starts_with("ln_f.w") || name.ends_with("ln1.weight");
      p.value = Tensor<double>::full(p.value.shape(), gain ? 1 : 0);
    });
    for (Index v = 0; v < kVocab; ++v) {
      set(model.tok.weight, v, token(v), 1);
      set(model.head->weight, v, token(v), 1);
    }
    for (Index t = 0; t < kTime; ++t) set(model.pos.weight, t, position(t), 1);

    auto& a = model.blocks[0].attn;
    for (Index t = 0; t < kTime; ++t) {
      if (t + 1 < kTime) read(a.w_q, 0, 0, t, position(t + 1), kSharp * std::sqrt(kD));
      read(a.w_k, 0, 0, t, position(t), 1);
      read(a.w_q, 0, 2, t, position(t), kSharp * std::sqrt(kD));
      read(a.w_k, 0, 2, t, position(t), 1);
    }
    bias(a.w_q, 1, 0, kSharp * std::sqrt(kD));
    read(a.w_k, 0, 1, 0, position(0), 1);
    for (Index v = 0; v < kVocab; ++v) {
      read(a.w_v, 0, 0, v, token(v), 1);
      set(a.w_o.weight, before(v), v, 1);
    }

    auto& b = model.blocks[1].attn;
    bias(b.w_q, 1, 0, kSteep * std::sqrt(kD));
    for (Index v = 0; v < kVocab; ++v) {
      read(b.w_q, 1, 0, v, token(v), kSharp * std::sqrt(kD));
      read(b.w_k, 1, 0, v, before(v), 1);
      read(b.w_k, 1, 1, 0, token(v), static_cast<double>(v));
      for (const Index head : {0, 1}) {
        read(b.w_v, 1, head, v, token(v), 1);
        set(b.w_o.weight, token(v), head * kD + v, 1);
      }
    }
  }

  /// The weight of query i on key j, in closed form.
  static double weight(Index layer, Index head, std::span<const Id> ids, Index i, Index j) {
    const auto score = [&](Index key) -> double {
      const auto id = [&](Index at) { return ids[static_cast<std::size_t>(at)]; };
      if (layer == 0 && head == 0) return key == i - 1 ? kSharp : 0;
      if (layer == 0 && head == 1) return key == 0 ? kSharp : 0;
      if (layer == 0 && head == 2) return key == i ? kSharp : 0;
      // At place 0 the token before is the token itself: there is nothing else to look at.
      if (layer == 1 && head == 0) return id(std::max<Index>(0, key - 1)) == id(i) ? kSharp : 0;
      if (layer == 1 && head == 1) return kSteep * static_cast<double>(id(key));
      return 0;
    };
    double sum = 0;
    for (Index key = 0; key <= i; ++key) sum += std::exp(score(key));
    return std::exp(score(j)) / sum;
  }

 private:
  static Rng& rng() {
    static Rng one(1);
    return one;
  }
  static ModelConfig config() {
    return {.vocab = kVocab,
            .layers = 2,
            .heads = kHeads,
            .width = kWidth,
            .context = kTime,
            .attention_only = true,
            .tie = false};
  }
  static Index token(Index v) { return v; }
  static Index position(Index t) { return kVocab + t; }
  static Index before(Index v) { return kVocab + kTime + v; }

  static void set(Param<double>& p, Index row, Index column, double x) {
    p.value.data()[row * p.value.shape().last() + column] = x;
  }
  static void bias(Linear<double>& l, Index head, Index d, double x) {
    l.bias.value.data()[head * kD + d] += x;
  }
  /// Dimension d of a head becomes x times a column of the stream. The norm makes of `ones` ones
  /// among zeros a x - b; the weight undoes a, the bias b.
  static void read(Linear<double>& l, Index layer, Index head, Index d, Index column, double x) {
    const double ones = layer == 0 ? 2 : 3, mean = ones / static_cast<double>(kWidth);
    const double scale = std::sqrt(mean - mean * mean + 1e-5);
    set(l.weight, head * kD + d, column, x * scale);
    bias(l, head, d, x * mean);
  }
};

}  // namespace headwise::test
