#include "headwise/models/decoder.hpp"

#include <algorithm>
#include <cmath>

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
  const auto counted = [](const char* name, Index n) {
    require<ParameterError>(n >= 1 && n <= kMost, "{}: must be in [1, {}], got {}", name, kMost, n);
  };
  counted("vocab", vocab);
  counted("layers", layers);
  counted("context", context);
  counted("heads", heads);
  counted("width", width);
  require<ParameterError>(width % heads == 0, "heads: must divide width {}, got {}", width, heads);
  require<ParameterError>(dropout >= 0 && dropout < 1, "dropout: must be in [0, 1), got {}",
                          dropout);
  require<ParameterError>(std::isfinite(init_std) && init_std > 0,
                          "init-std: must be finite and > 0, got {}", init_std);
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
  return checked_pass(ctx, [&](const Ctx<T>& at) { return logits(at, final(at, ids)); });
}

template <Real T>
Var<T> Decoder<T>::resume(const Ctx<T>& ctx, Index layer, const Var<T>& resid) const {
  require(layer >= 0 && layer <= config.layers, "decoder: no block {} to resume at, of {} layers",
          layer, config.layers);
  require_stream(resid);
  return checked_pass(ctx, [&](const Ctx<T>& at) {
    return logits(at, final_from(at, static_cast<std::size_t>(layer), resid, nullptr));
  });
}

template <Real T>
Var<T> Decoder<T>::resume(const Ctx<T>& ctx, Index layer, const Var<T>& resid, const Var<T>& z,
                          Index from) const {
  require(layer >= 0 && layer < config.layers, "decoder: no heads {} to resume at, of {} layers",
          layer, config.layers);
  require_stream(resid);
  require(z.shape() == resid.shape(), "decoder: z {} and the stream {} are not of one shape",
          z.shape(), resid.shape());
  const Index time = resid.shape()[1];
  require(from >= 0 && from < time, "decoder: no position {} among {}", from, time);
  return checked_pass(ctx, [&](const Ctx<T>& at) {
    const auto i = static_cast<std::size_t>(layer);
    const Var<T> after = blocks[i].with_heads(at.in("blocks", layer), resid, z);
    const Var<T> x = final_from(at, i + 1, after, nullptr);
    return logits(at, from == 0 ? x : slice(x, 1, from, time));
  });
}

template <Real T>
Var<T> Decoder<T>::loss(const Ctx<T>& ctx, const Ids& ids, const Ids& targets) const {
  if (config.vocab < kLargeVocab) return cross_entropy((*this)(ctx, ids), targets);
  return checked_pass(ctx, [&](const Ctx<T>& at) {
    const Var<T> x = final(at, ids);
    const Var<T> w = output_weight(at);
    if (at.wants("logits")) {
      const Var<T> all = linear(x, w), shown = at.tap("logits", all);
      if (!shown.value().shares(all.value())) return cross_entropy(shown, targets);
    }
    return linear_cross_entropy(x, w, targets);  // the same bits whether somebody looked or not
  });
}

template <Real T>
Cache<T> Decoder<T>::cache(Index sequences, Index capacity) const {
  require(capacity <= config.context, "decoder: room for {} tokens is more than the context of {}",
          capacity, config.context);
  return Cache<T>(blocks.size(), KeyValues<T>(sequences, capacity));
}

template <Real T>
Var<T> Decoder<T>::next(const Ctx<T>& ctx, const Ids& ids, Cache<T>& cache) const {
  return checked_pass(ctx, [&](const Ctx<T>& at) {
    const Var<T> x = final(at, ids, &cache);
    const Index b = x.shape()[0], t = x.shape()[1];
    return logits(at, reshape(slice(x, 1, t - 1, t), {b, config.width}));
  });
}

template <Real T>
Var<T> Decoder<T>::embed(const Ctx<T>& ctx, const Ids& ids, const Cache<T>* cache) const {
  require(ids.shape.rank() == 2, "decoder: ids {} are not (B,T)", ids.shape);
  const Var<T> x = tok(ctx, ids) + pos(ctx, places(ids.shape, cache));
  return ctx.tap("embed", dropout(x, config.dropout, ctx.random));
}

template <Real T>
Var<T> Decoder<T>::logits(const Ctx<T>& ctx, const Var<T>& x) const {
  return ctx.tap("logits", linear(x, output_weight(ctx)));
}

template <Real T>
void Decoder<T>::require_stream(const Var<T>& x) const {
  const Shape& s = x.shape();
  require(s.rank() == 3 && s[2] == config.width, "decoder: the stream {} is not (B,T,{})", s,
          config.width);
}

template <Real T>
Var<T> Decoder<T>::final(const Ctx<T>& ctx, const Ids& ids, Cache<T>* cache) const {
  return final_from(ctx, 0, embed(ctx, ids, cache), cache);
}

template <Real T>
Var<T> Decoder<T>::final_from(const Ctx<T>& ctx, std::size_t layer, Var<T> x,
                              Cache<T>* cache) const {
  for (std::size_t i = layer; i < blocks.size(); ++i) {
    Ctx<T> at = ctx.in("blocks", static_cast<Index>(i));
    if (cache != nullptr) at.cache = &cache->at(i);
    x = blocks[i](at, x);
  }
  return ctx.tap("final", ln_f(ctx, x));
}

template <Real T>
Ids Decoder<T>::places(const Shape& shape, const Cache<T>* cache) const {
  const Index time = shape[1];
  std::vector<Index> before{0};  // one for all sequences, or one each
  if (cache != nullptr) {
    require(cache->size() == blocks.size(), "decoder: a cache of {} layers for {}", cache->size(),
            blocks.size());
    before = cache->front().lengths();
  }
  const Index longest = *std::max_element(before.begin(), before.end());
  require(time >= 1 && longest + time <= config.context,
          "decoder: {} tokens do not fit the context of {}", longest + time, config.context);
  std::vector<Id> all;
  for (const Index from : before)
    for (Index t = 0; t < time; ++t) all.push_back(static_cast<Id>(from + t));
  return cache == nullptr ? Ids({time}, std::move(all))
                          : Ids({static_cast<Index>(before.size()), time}, std::move(all));
}

template struct Decoder<float>;
template struct Decoder<double>;

}  // namespace headwise
