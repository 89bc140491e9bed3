#include "headwise/nn/layer_table.hpp"

#include <string_view>

#include "headwise/nn/modules.hpp"

namespace headwise {
namespace {

/// Large enough that gradients stand far above what rounding hides.
constexpr double kStd = 0.5;

/// The checks of one layer, as they are put together.
template <Real T>
class Cases {
 public:
  Cases(std::string name, std::uint64_t seed) : name_(std::move(name)), seed_(seed), rng_(seed) {}

  /// One more: make(rng) gives the layer, call(layer, ctx, x) a result from inputs of those shapes.
  template <class Make, class Call>
  void add(std::string label, const std::vector<Shape>& shapes, Make make, Call call) {
    auto layer = make(rng_);
    roughen(layer, kStd, seed_ + 1);
    std::vector<Tensor<T>> inputs;
    for (const Shape& shape : shapes) inputs.push_back(normal_tensor<T>(shape, 1, rng_));
    auto check = [layer, inputs, call](GradOptions options) mutable {
      if constexpr (requires { layer.heads; }) options.heads = layer.heads;
      if constexpr (requires { layer.attn; }) options.heads = layer.attn.heads;
      const auto forward = [&](const Ctx<T>& ctx, const std::vector<Var<T>>& x) {
        return call(std::as_const(layer), ctx, x);
      };
      return gradcheck_module<T>(layer, forward, inputs, std::move(options));
    };
    cases_.push_back({name_, std::move(label), std::move(check)});
  }
  /// One more layer of an input of that shape.
  template <class Make>
  void add(std::string label, const Shape& shape, Make make) {
    add(std::move(label), std::vector<Shape>{shape}, make,
        [](const auto& layer, const Ctx<T>& ctx, const auto& x) { return layer(ctx, x[0]); });
  }
  std::vector<GradCase> all() && { return std::move(cases_); }

 private:
  std::string name_;
  std::uint64_t seed_;
  Rng rng_;
  std::vector<GradCase> cases_;
};

/// Wants to see everything, and changes nothing.
template <Real T>
struct Watcher : Probe<T> {
  [[nodiscard]] bool wants(std::string_view) const override { return true; }
};

/// The forward pass that shows what is between fused ops.
template <Real T>
Var<T> watched(const auto& layer, Ctx<T> ctx, const std::vector<Var<T>>& x) {
  Watcher<T> watcher;
  ctx.probe = &watcher;
  return layer(ctx, x[0]);
}

const BlockConfig kPlain{.width = 6, .heads = 2, .init_std = kStd, .residual_std = kStd};

/// kPlain with one thing changed.
BlockConfig with(auto change) {
  BlockConfig c = kPlain;
  change(c);
  return c;
}

}  // namespace

template <Real T>
std::vector<GradCase> proofs::Linear(std::uint64_t seed) {
  const auto of = [](bool bias) {
    return [bias](Rng& rng) { return headwise::Linear<T>(5, 3, bias, kStd, rng); };
  };
  Cases<T> cases("Linear", seed);
  cases.add("matrix", {4, 5}, of(true));
  cases.add("rank 3", {2, 3, 5}, of(true));
  cases.add("many rows", {kFewRows + 1, 5}, of(true));
  cases.add("no bias", {4, 5}, of(false));
  return std::move(cases).all();
}

template <Real T>
std::vector<GradCase> proofs::Embedding(std::uint64_t seed) {
  Cases<T> cases("Embedding", seed);
  const auto look_up = [&](std::string label, const Ids& ids) {
    cases.add(
        std::move(label), {}, [](Rng& rng) { return headwise::Embedding<T>(5, 3, kStd, rng); },
        [ids](const auto& layer, const Ctx<T>& ctx, const auto&) { return layer(ctx, ids); });
  };
  look_up("ids once", Ids({4}, {4, 0, 2, 1}));
  look_up("repeated ids", Ids({2, 3}, {2, 0, 2, 4, 4, 2}));
  return std::move(cases).all();
}

template <Real T>
std::vector<GradCase> proofs::LayerNorm(std::uint64_t seed) {
  const auto of = [](bool bias) {
    return [bias](Rng&) { return headwise::LayerNorm<T>(5, bias); };
  };
  const auto of_sum = [](const auto& layer, const Ctx<T>& ctx, const auto& x) {
    const SumAndNorm<T> y = layer.of_sum(ctx, x[0], x[1]);
    return concat(std::vector<Var<T>>{y.sum, y.norm}, 0);
  };
  Cases<T> cases("LayerNorm", seed);
  cases.add("matrix", {3, 5}, of(true));
  cases.add("rank 3", {2, 3, 5}, of(true));
  cases.add("no bias", {3, 5}, of(false));
  cases.add("of a sum", {{2, 3, 5}, {2, 3, 5}}, of(true), of_sum);
  cases.add("of a sum, no bias", {{3, 5}, {3, 5}}, of(false), of_sum);
  return std::move(cases).all();
}

template <Real T>
std::vector<GradCase> proofs::MultiHeadAttention(std::uint64_t seed) {
  const auto of = [](BlockConfig c) {
    return [c](Rng& rng) { return headwise::MultiHeadAttention<T>(c, rng); };
  };
  Cases<T> cases("MultiHeadAttention", seed);
  cases.add("two heads", {2, 4, 6}, of(kPlain));
  cases.add("one head", {1, 4, 6}, of(with([](auto& c) { c.heads = 1; })));
  cases.add("no bias", {2, 4, 6}, of(with([](auto& c) { c.bias = false; })));
  cases.add("dropout", {2, 4, 6}, of(with([](auto& c) { c.dropout = 0.3; })));
  cases.add("watched", {{2, 4, 6}}, of(kPlain), watched<T, headwise::MultiHeadAttention<T>>);
  return std::move(cases).all();
}

template <Real T>
std::vector<GradCase> proofs::Mlp(std::uint64_t seed) {
  const auto of = [](BlockConfig c) { return [c](Rng& rng) { return headwise::Mlp<T>(c, rng); }; };
  Cases<T> cases("Mlp", seed);
  cases.add("matrix", {3, 6}, of(kPlain));
  cases.add("rank 3", {2, 3, 6}, of(kPlain));
  cases.add("tanh", {3, 6}, of(with([](auto& c) { c.gelu = Gelu::tanh; })));
  cases.add("no bias", {3, 6}, of(with([](auto& c) { c.bias = false; })));
  cases.add("watched", {{3, 6}}, of(kPlain), watched<T, headwise::Mlp<T>>);
  return std::move(cases).all();
}

template <Real T>
std::vector<GradCase> proofs::Block(std::uint64_t seed) {
  const auto of = [](BlockConfig c) {
    return [c](Rng& rng) { return headwise::Block<T>(c, rng); };
  };
  Cases<T> cases("Block", seed);
  cases.add("exact", {2, 3, 6}, of(kPlain));
  cases.add("tanh", {2, 3, 6}, of(with([](auto& c) { c.gelu = Gelu::tanh; })));
  cases.add("no bias", {2, 3, 6}, of(with([](auto& c) { c.bias = false; })));
  cases.add("dropout", {2, 3, 6}, of(with([](auto& c) { c.dropout = 0.3; })));
  cases.add("attention only", {2, 3, 6}, of(with([](auto& c) { c.mlp = false; })));
  cases.add("watched", {{2, 3, 6}}, of(kPlain), watched<T, headwise::Block<T>>);
  return std::move(cases).all();
}

template <Real T>
std::vector<GradCase> layer_cases(std::uint64_t seed) {
  std::vector<GradCase> all;
#define HEADWISE_LAYER(name) \
  for (GradCase & c : proofs::name<T>(seed)) all.push_back(std::move(c));
#include "headwise/nn/layers.def"
#undef HEADWISE_LAYER
  return all;
}

template std::vector<GradCase> layer_cases<float>(std::uint64_t);
template std::vector<GradCase> layer_cases<double>(std::uint64_t);

}  // namespace headwise
