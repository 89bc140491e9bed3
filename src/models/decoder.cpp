#include "headwise/models/decoder.hpp"

#include <cmath>
#include <numeric>

namespace headwise {
namespace {

/// Tokens from which on the logits are not held whole in training: there they are most of the
/// memory.
constexpr Index kLargeVocab = 4096;

const ModelConfig& validated(const ModelConfig& config) {
  config.validate();
  return config;
}

BlockConfig block_config(const ModelConfig& c) {
  return {.width = c.width,
          .heads = c.heads,
          .bias = c.bias,
          .mlp = !c.attention_only,
          .gelu = c.gelu,
          .dropout = c.dropout,
          .init_std = c.init_std,
          .residual_std = c.init_std / std::sqrt(2.0 * static_cast<double>(c.layers))};
}

}  // namespace

void ModelConfig::validate() const {
  static constexpr Index kMost = 1 << 24;  // keeps every product of two of them within Index
  const auto at_least_one = [](const char* option, Index n) {
    require<UsageError>(n >= 1 && n <= kMost, "{}: {} is not from 1 to {}", option, n, kMost);
  };
  at_least_one("vocabulary", vocab);
  at_least_one("--layers", layers);
  at_least_one("--context", context);
  require<UsageError>(heads >= 1 && width >= 1 && width % heads == 0,
                      "--heads: {} does not divide --width {}", heads, width);
  at_least_one("--width", width);
  require<UsageError>(dropout >= 0 && dropout < 1, "--dropout: {} is not in [0, 1)", dropout);
  require<UsageError>(std::isfinite(init_std) && init_std > 0, "--init-std: {} is not above 0",
                      init_std);
}

template <Real T>
Decoder<T>::Decoder(const ModelConfig& c, Rng& rng)
    : config(validated(c)),
      tok(c.vocab, c.width, c.init_std, rng),
      pos(c.context, c.width, c.init_std, rng),
      ln_f(c.width, c.bias) {
  for (Index i = 0; i < c.layers; ++i) blocks.emplace_back(block_config(c), rng);
  if (!c.tie) head.emplace(c.width, c.vocab, false, c.init_std, rng);
}

template <Real T>
Var<T> Decoder<T>::operator()(const Ctx<T>& ctx, const Ids& ids) const {
  const Var<T> x = final(ctx, ids);
  return ctx.tap("logits", linear(x, output_weight(ctx)));
}

template <Real T>
Var<T> Decoder<T>::loss(const Ctx<T>& ctx, const Ids& ids, const Ids& targets) const {
  if (config.vocab < kLargeVocab) return cross_entropy((*this)(ctx, ids), targets);
  const Var<T> x = final(ctx, ids);
  const Var<T> w = output_weight(ctx);
  if (ctx.wants("logits")) {
    const Var<T> logits = linear(x, w), shown = ctx.tap("logits", logits);
    if (!shown.value().shares(logits.value())) return cross_entropy(shown, targets);
  }
  return linear_cross_entropy(x, w, targets);  // the same bits whether somebody looked or not
}

template <Real T>
Var<T> Decoder<T>::final(const Ctx<T>& ctx, const Ids& ids) const {
  require(ids.shape.rank() == 2, "decoder: ids {} are not (B,T)", ids.shape);
  const Index time = ids.shape[1];
  require(time >= 1 && time <= config.context, "decoder: {} tokens do not fit the context of {}",
          time, config.context);
  std::vector<Id> places(static_cast<std::size_t>(time));
  std::iota(places.begin(), places.end(), 0);

  Var<T> x = tok(ctx, ids) + pos(ctx, Ids({time}, std::move(places)));
  x = ctx.tap("embed", dropout(x, config.dropout, ctx.random));
  for (std::size_t i = 0; i < blocks.size(); ++i)
    x = blocks[i](ctx.in("blocks", static_cast<Index>(i)), x);
  return ctx.tap("final", ln_f(ctx, x));
}

template struct Decoder<float>;
template struct Decoder<double>;

}  // namespace headwise
