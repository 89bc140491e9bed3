// A causal language model from a config struct.
#pragma once

#include <optional>
#include <vector>

#include "headwise/nn/modules.hpp"

namespace headwise {

/// What a decoder looks like. One walk, visit(), serves the command line, its help and the saved
/// configuration.
struct ModelConfig {
  Index vocab = 0;  ///< V; follows from the tokenizer
  Index layers = 2, heads = 4, width = 64, context = 64;
  double dropout = 0;
  bool attention_only = false;
  bool tie = true;
  bool bias = true;
  Gelu gelu = Gelu::exact;
  double init_std = 0.02;

  void visit(auto&& v) {
    v("layers", layers, "transformer blocks");
    v("heads", heads, "attention heads in a block; divides --width");
    v("width", width, "width of the residual stream");
    v("context", context, "tokens the model looks at");
    v("dropout", dropout, "dropout in training, from 0 to below 1");
    v("attention-only", attention_only, "blocks without an MLP");
    v("tie", tie, "the output weights are the token embedding");
    v("bias", bias, "biases in linear layers and norms");
    v("gelu", gelu, "exact or tanh");
    v("init-std", init_std, "standard deviation of the initial weights");
  }
  /// Throws UsageError, naming option and value, for a model that cannot be. Allocates nothing.
  void validate() const;
};

/// Keys and values of every layer, for decoding.
template <Real T>
using Cache = std::vector<KeyValues<T>>;

/// GPT-2's decoder (Radford et al. 2019, "Language models are unsupervised multitask learners",
/// sec. 2.3): token plus learned position embeddings, pre-norm blocks, a last norm, and logits by
/// the token embedding (tied) or a matrix of its own. Initialised normal(0, init_std), the
/// projections into the residual stream by a further 1/sqrt(2L) (ibid.).
template <Real T>
struct Decoder {
  ModelConfig config;
  Embedding<T> tok, pos;
  std::vector<Block<T>> blocks;
  LayerNorm<T> ln_f;
  std::optional<Linear<T>> head;  // absent when tied

  /// Throws UsageError as config.validate() does.
  Decoder(const ModelConfig& config, Rng& rng);

  /// Logits (B,T,V) of the next token.   ids (B,T), T up to config.context.
  /// Throws ShapeError for a longer T or an id outside the vocabulary.
  /// Taps: embed, blocks.0.resid_pre, ..., final, logits. Every pass throws UsageError for a name
  /// of the probe's names() that it does not have.
  Var<T> operator()(const Ctx<T>& ctx, const Ids& ids) const;

  /// The residual stream (B,T,C) before the first block. `cache`: what came before, or null.
  Var<T> embed(const Ctx<T>& ctx, const Ids& ids, const Cache<T>* cache = nullptr) const;
  /// Those logits, given the residual stream (B,T,C) before block `layer`, from 0 to config.layers:
  /// with all layers behind it, what the logit lens reads. The bits of a whole forward pass.
  Var<T> resume(const Ctx<T>& ctx, Index layer, const Var<T>& resid) const;
  /// The same, given z (B,T,C) of that block's heads as well: goes on from its tap, so that who
  /// changes heads does not pay for them. There must be such a block. The logits are those of the
  /// positions from `from` on.
  Var<T> resume(const Ctx<T>& ctx, Index layer, const Var<T>& resid, const Var<T>& z,
                Index from = 0) const;

  /// An empty cache for so many sequences of up to `capacity` tokens, config.context at most.
  Cache<T> cache(Index sequences, Index capacity) const;
  /// Logits (B,V) of the token after the last of ids (B,T), which continue the sequences in the
  /// cache, each of a length of its own when T is 1. The same as the full forward but for the last
  /// bits. A sequence's bits do not depend on the others while B T is at most kFewRows, or B is 1.
  /// Throws ShapeError when a sequence grows beyond config.context, and as KeyValues::extend()
  /// does.
  Var<T> next(const Ctx<T>& ctx, const Ids& ids, Cache<T>& cache) const;

  /// cross_entropy() of those logits and targets (B,T). Where the vocabulary is large the logits of
  /// all tokens are never held together, unless a probe wants them.
  Var<T> loss(const Ctx<T>& ctx, const Ids& ids, const Ids& targets) const;

  void visit(auto&& v) {
    v("tok", tok);
    v("pos", pos);
    v("blocks", blocks);
    v("ln_f", ln_f);
    if (head) v("head", *head);
  }

 private:
  /// The residual stream (B,T,C) after the last norm.
  Var<T> final(const Ctx<T>& ctx, const Ids& ids, Cache<T>* cache = nullptr) const;
  /// The same from the stream before block `layer` on.
  Var<T> final_from(const Ctx<T>& ctx, std::size_t layer, Var<T> x, Cache<T>* cache) const;
  /// The logits of that.
  Var<T> logits(const Ctx<T>& ctx, const Var<T>& x) const;
  /// Throws ShapeError unless x is (B,T,C).
  void require_stream(const Var<T>& x) const;
  /// Positions of tokens (B,T): (T), or (B,T) after those in a cache.
  Ids places(const Shape& shape, const Cache<T>* cache) const;
  Var<T> output_weight(const Ctx<T>& ctx) const {
    return ctx.use(head ? head->weight : tok.weight);
  }
};

}  // namespace headwise
