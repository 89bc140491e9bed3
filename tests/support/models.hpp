// Small decoders for tests, one training step of them, and somebody who watches.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "headwise/data/text.hpp"
#include "headwise/models/decoder.hpp"
#include "headwise/nn/gradcheck.hpp"
#include "support/backprop.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"

namespace headwise::test {

/// Uniform ids, always the same for a seed.
inline Ids random_ids(const Shape& shape, Index vocab, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<Id> values;
  for (Index i = 0; i < shape.size(); ++i) values.push_back(static_cast<Id>(rng.below(vocab)));
  return {shape, std::move(values)};
}

/// A decoder without a parameter that is 0 or 1 on purpose.
template <Real T>
Decoder<T> rough_decoder(const ModelConfig& config, std::uint64_t seed, double std = 0.3) {
  Rng rng(seed);
  Decoder<T> model(config, rng);
  roughen(model, std, seed + 1);
  return model;
}

/// For the many tiny products of a small model: see Threads.
struct OneThread : Threads {
  OneThread() : Threads(1) {}
};

template <Real T>
using Tensors = std::map<std::string, Tensor<T>>;

template <Real T>
Tensors<T> weights_of(Decoder<T>& model) {
  Tensors<T> all;
  for_each_param(model, [&](const std::string& name, const Param<T>& p) { all[name] = p.value; });
  return all;
}

/// Whether two collections have the same names and the same bits.
template <Real T>
bool same_bits(const Tensors<T>& a, const Tensors<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && same_bits(x.second, y.second);
  });
}

/// What one forward and backward pass over a batch gave.
template <Real T>
struct ModelPass {
  Tensor<T> logits;
  double loss = 0;
  Tensors<T> grads;  ///< empty tensors where none arrived
  std::vector<std::string> ops;
};

/// The pass of a loss that forward(ctx, pass) computes.
template <Real T, class F>
ModelPass<T> pass_of(Decoder<T>& model, Probe<T>* probe, Rng* random, F forward) {
  Tape<T> tape;
  const Ctx<T> ctx{.tape = &tape, .probe = probe, .random = random};
  for_each_param(model, [](const std::string&, Param<T>& p) { p.grad = {}; });
  ModelPass<T> pass;
  const Var<T> loss = forward(ctx, pass);
  pass.loss = static_cast<double>(loss.item());
  pass.ops = tape.op_names();
  tape.backward(loss);
  for_each_param(model, [&](const std::string& name, Param<T>& p) {
    pass.grads[name] = std::exchange(p.grad, {});
  });
  return pass;
}

/// By the logits of all tokens.
template <Real T>
ModelPass<T> run_pass(Decoder<T>& model, const Batch& batch, Probe<T>* probe = nullptr,
                      Rng* random = nullptr) {
  return pass_of(model, probe, random, [&](const Ctx<T>& ctx, ModelPass<T>& pass) {
    const Var<T> logits = model(ctx, batch.inputs);
    pass.logits = logits.value();
    return cross_entropy(logits, batch.targets);
  });
}

/// By the model's own loss().
template <Real T>
ModelPass<T> run_loss(Decoder<T>& model, const Batch& batch, Probe<T>* probe = nullptr,
                      Rng* random = nullptr) {
  return pass_of(model, probe, random, [&](const Ctx<T>& ctx, ModelPass<T>&) {
    return model.loss(ctx, batch.inputs, batch.targets);
  });
}

/// Logits of a forward pass that records nothing.
template <Real T>
Tensor<T> infer(const Decoder<T>& model, const Ids& ids, Probe<T>* probe = nullptr) {
  const Ctx<T> ctx{.probe = probe};
  return model(ctx, ids).value();
}

/// Keeps every activation it is shown.
template <Real T>
struct Recorder : Probe<T> {
  mutable std::vector<std::string> asked;  ///< every name, in the order of the forward pass
  Tensors<T> seen;

  [[nodiscard]] bool wants(std::string_view name) const override {
    asked.emplace_back(name);
    return true;
  }
  Var<T> at(std::string_view name, Var<T> x) override {
    seen[std::string(name)] = x.value();
    return x;
  }
  bool pattern(std::string_view name, Tensor<T>& p) override {
    seen[std::string(name)] = p;
    return false;
  }
};

/// Puts f(x) in the place of the activations of that name.
template <Real T, class F>
struct Replacing : Probe<T> {
  std::string target;
  F f;

  Replacing(std::string name, F change) : target(std::move(name)), f(std::move(change)) {}
  [[nodiscard]] bool wants(std::string_view name) const override { return name == target; }
  Var<T> at(std::string_view, Var<T> x) override { return f(std::move(x)); }
  bool pattern(std::string_view, Tensor<T>& p) override {
    p = f(Var<T>(p)).value();
    return true;
  }
};

template <Real T, class F>
Replacing<T, F> replacing(std::string name, F f) {
  return {std::move(name), std::move(f)};
}

}  // namespace headwise::test
