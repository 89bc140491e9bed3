// The parts of a transformer. A module is a plain struct: members, a forward, and visit().
#pragma once

#include <optional>

#include "headwise/nn/ctx.hpp"
#include "headwise/nn/visit.hpp"

namespace headwise {

/// y = x W^T + b.   x (..., C), weight (O,C), bias (O), y (..., O).
/// Initialised normal(0, std), the bias zero (Radford et al. 2018, "Improving language
/// understanding", sec. 4.1: std 0.02).
template <Real T>
struct Linear {
  Param<T> weight, bias;  // without a bias, bias.value is empty

  Linear(Index c, Index o, bool with_bias, double std, Rng& rng);
  Var<T> operator()(const Ctx<T>& ctx, const Var<T>& x) const;
  Var<T> bias_in(const Ctx<T>& ctx) const;  ///< absent without one
  void visit(auto&& v) {
    v("weight", weight);
    if (!bias.value.empty()) v("bias", bias);
  }
};

/// Rows of a table.   ids (...), weight (V,C), result (..., C). Initialised normal(0, std).
template <Real T>
struct Embedding {
  Param<T> weight;

  Embedding(Index v, Index c, double std, Rng& rng);
  Var<T> operator()(const Ctx<T>& ctx, const Ids& ids) const;
  void visit(auto&& v) { v("weight", weight); }
};

/// layer_norm() with a gain (ones at first) and a bias (zeros at first).   x (..., C).
template <Real T>
struct LayerNorm {
  Param<T> weight, bias;  // gain and bias (C); without a bias, bias.value is empty

  LayerNorm(Index c, bool with_bias);
  Var<T> operator()(const Ctx<T>& ctx, const Var<T>& x) const;
  /// See add_layer_norm().
  SumAndNorm<T> of_sum(const Ctx<T>& ctx, const Var<T>& a, const Var<T>& b) const;
  void visit(auto&& v) {
    v("weight", weight);
    if (!bias.value.empty()) v("bias", bias);
  }
};

/// How the parts of a block are built.
struct BlockConfig {
  Index width = 0, heads = 1;
  bool bias = true;
  bool mlp = true;  ///< false: attention only
  Gelu gelu = Gelu::exact;
  double dropout = 0;  ///< of the pattern and of what is added to the residual stream
  double init_std = 0.02;
  double residual_std = 0.02;  ///< of the two projections into the residual stream
};

/// Causal multi-head self-attention: Q = x W_Q^T, K = x W_K^T, V = x W_V^T, each with its bias,
/// heads side by side, then W_O (Vaswani et al. 2017, arXiv:1706.03762, sec. 3.2.2).   x (B,T,C).
/// Head h owns the rows [hD, (h+1)D) of W_Q, W_K and W_V and the same columns of W_O.
/// With a cache the x are the tokens after those it holds, which they see as well.
/// Taps: q, k, v (of x alone), pattern, z (heads before W_O), out.
template <Real T>
struct MultiHeadAttention {
  Linear<T> w_q, w_k, w_v, w_o;
  Index heads;
  double dropout;

  MultiHeadAttention(const BlockConfig& config, Rng& rng);
  Var<T> operator()(const Ctx<T>& ctx, const Var<T>& x) const { return out(ctx, z(ctx, x)); }
  /// Its two halves: the heads of x, and what W_O makes of them.
  Var<T> z(const Ctx<T>& ctx, const Var<T>& x) const;
  Var<T> out(const Ctx<T>& ctx, const Var<T>& z) const;
  void visit(auto&& v) {
    v("w_q", w_q);
    v("w_k", w_k);
    v("w_v", w_v);
    v("w_o", w_o);
  }
};

/// down(gelu(up(x))).   x (..., C), 4C inside. Taps: pre, hidden, out.
template <Real T>
struct Mlp {
  Linear<T> up, down;
  Gelu kind;

  Mlp(const BlockConfig& config, Rng& rng);
  Var<T> operator()(const Ctx<T>& ctx, const Var<T>& x) const;
  void visit(auto&& v) {
    v("up", up);
    v("down", down);
  }
};

/// Pre-norm transformer block (Radford et al. 2019, "Language models are unsupervised multitask
/// learners", sec. 2.3): x + attn(ln1(x)), then x + mlp(ln2(x)).   x (B,T,C).
/// Taps: resid_pre, resid_mid, resid_post.
template <Real T>
struct Block {
  LayerNorm<T> ln1;
  MultiHeadAttention<T> attn;
  std::optional<LayerNorm<T>> ln2;  // absent with attention only, like mlp
  std::optional<Mlp<T>> mlp;
  double dropout;

  Block(const BlockConfig& config, Rng& rng);
  Var<T> operator()(const Ctx<T>& ctx, const Var<T>& x) const;
  /// The same from the heads on, given their z (B,T,C) of x.
  Var<T> with_heads(const Ctx<T>& ctx, const Var<T>& x, const Var<T>& z) const;
  void visit(auto&& v) {
    v("ln1", ln1);
    v("attn", attn);
    if (mlp) {
      v("ln2", *ln2);
      v("mlp", *mlp);
    }
  }
};

}  // namespace headwise
