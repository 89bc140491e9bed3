#include "headwise/nn/modules.hpp"

namespace headwise {
namespace {

/// Passes attention's pattern on to the probe, under its full name.
template <Real T>
class PatternToProbe : public PatternTap<T> {
 public:
  explicit PatternToProbe(const Ctx<T>& ctx) : ctx_(ctx) {
    if (ctx.probe == nullptr) return;
    name_ = ctx.path("pattern");
    wanted_ = ctx.probe->wants(name_);
  }
  /// Null unless the probe wants it: then the pattern is never held whole.
  PatternTap<T>* if_wanted() { return wanted_ ? this : nullptr; }
  bool see(Tensor<T>& pattern) override {
    const Shape shape = pattern.shape();
    const bool constant = ctx_.probe->pattern(name_, pattern);
    require(!pattern.empty() && pattern.shape() == shape,
            "hook: '{}' of shape {} was replaced by a tensor of shape {}", name_, shape,
            pattern.shape());
    return constant;
  }

 private:
  const Ctx<T>& ctx_;
  std::string name_;
  bool wanted_ = false;
};

}  // namespace

template <Real T>
Linear<T>::Linear(Index c, Index o, bool with_bias, double std, Rng& rng) {
  weight.value = normal_tensor<T>({o, c}, std, rng);
  if (with_bias) bias.value = Tensor<T>::zeros({o});
}

template <Real T>
Var<T> Linear<T>::operator()(const Ctx<T>& ctx, const Var<T>& x) const {
  return linear(x, ctx.use(weight), bias_in(ctx));
}

template <Real T>
Var<T> Linear<T>::bias_in(const Ctx<T>& ctx) const {
  return bias.value.empty() ? Var<T>() : ctx.use(bias);
}

template <Real T>
Embedding<T>::Embedding(Index v, Index c, double std, Rng& rng) {
  weight.value = normal_tensor<T>({v, c}, std, rng);
}

template <Real T>
Var<T> Embedding<T>::operator()(const Ctx<T>& ctx, const Ids& ids) const {
  return embedding(ctx.use(weight), ids);
}

template <Real T>
LayerNorm<T>::LayerNorm(Index c, bool with_bias) {
  weight.value = Tensor<T>::full({c}, T(1));
  if (with_bias) bias.value = Tensor<T>::zeros({c});
}

template <Real T>
Var<T> LayerNorm<T>::operator()(const Ctx<T>& ctx, const Var<T>& x) const {
  return layer_norm(x, ctx.use(weight), bias.value.empty() ? Var<T>() : ctx.use(bias));
}

template <Real T>
SumAndNorm<T> LayerNorm<T>::of_sum(const Ctx<T>& ctx, const Var<T>& a, const Var<T>& b) const {
  return add_layer_norm(a, b, ctx.use(weight), bias.value.empty() ? Var<T>() : ctx.use(bias));
}

template <Real T>
MultiHeadAttention<T>::MultiHeadAttention(const BlockConfig& c, Rng& rng)
    : w_q(c.width, c.width, c.bias, c.init_std, rng),
      w_k(c.width, c.width, c.bias, c.init_std, rng),
      w_v(c.width, c.width, c.bias, c.init_std, rng),
      w_o(c.width, c.width, c.bias, c.residual_std, rng),
      heads(c.heads),
      dropout(c.dropout) {}

template <Real T>
Var<T> MultiHeadAttention<T>::z(const Ctx<T>& ctx, const Var<T>& x) const {
  const Var<T> q = ctx.tap("q", w_q(ctx, x));
  const Var<T> k = ctx.tap("k", w_k(ctx, x));
  const Var<T> v = ctx.tap("v", w_v(ctx, x));
  const Visible<T> seen = ctx.cache ? ctx.cache->extend(k, v) : Visible<T>{k, v, causal()};
  PatternToProbe<T> pattern(ctx);
  Attend<T> how{.heads = heads, .mask = seen.mask, .dropout = dropout};
  how.random = ctx.random;
  how.tap = pattern.if_wanted();
  return attention(q, seen.k, seen.v, how);
}

template <Real T>
Var<T> MultiHeadAttention<T>::out(const Ctx<T>& ctx, const Var<T>& z) const {
  return ctx.tap("out", w_o(ctx, ctx.tap("z", z)));
}

template <Real T>
Mlp<T>::Mlp(const BlockConfig& c, Rng& rng)
    : up(c.width, 4 * c.width, c.bias, c.init_std, rng),
      down(4 * c.width, c.width, c.bias, c.residual_std, rng),
      kind(c.gelu) {}

template <Real T>
Var<T> Mlp<T>::operator()(const Ctx<T>& ctx, const Var<T>& x) const {
  const Var<T> pre = ctx.tap("pre", up(ctx, x));
  if (ctx.wants("hidden"))  // the same bits, with gelu(pre) on show
    return ctx.tap("out", down(ctx, ctx.tap("hidden", gelu(pre, kind))));
  return ctx.tap("out", gelu_linear(pre, ctx.use(down.weight), down.bias_in(ctx), kind));
}

template <Real T>
Block<T>::Block(const BlockConfig& c, Rng& rng)
    : ln1(c.width, c.bias), attn(c, rng), dropout(c.dropout) {
  if (!c.mlp) return;
  ln2.emplace(c.width, c.bias);
  mlp.emplace(c, rng);
}

template <Real T>
Var<T> Block<T>::operator()(const Ctx<T>& ctx, const Var<T>& x) const {
  const Var<T> pre = ctx.tap("resid_pre", x);
  return with_heads(ctx, pre, attn.z(ctx.in("attn"), ln1(ctx, pre)));
}

template <Real T>
Var<T> Block<T>::with_heads(const Ctx<T>& ctx, const Var<T>& pre, const Var<T>& z) const {
  const auto drop = [&](const Var<T>& y) { return headwise::dropout(y, dropout, ctx.random); };
  const Var<T> attended = drop(attn.out(ctx.in("attn"), z));
  if (!mlp) return ctx.tap("resid_post", pre + attended);
  SumAndNorm<T> mid;
  if (ctx.wants("resid_mid")) {  // the same bits, with the stream on show
    mid.sum = ctx.tap("resid_mid", pre + attended);
    mid.norm = (*ln2)(ctx, mid.sum);
  } else {
    mid = ln2->of_sum(ctx, pre, attended);
  }
  return ctx.tap("resid_post", mid.sum + drop((*mlp)(ctx.in("mlp"), mid.norm)));
}

#define HEADWISE_LAYER(name)   \
  template struct name<float>; \
  template struct name<double>;
#include "headwise/nn/layers.def"
#undef HEADWISE_LAYER

}  // namespace headwise
