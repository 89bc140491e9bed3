// Gradient checks of modules: their inputs and all their parameters.
#pragma once

#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include "headwise/autograd/gradcheck.hpp"
#include "headwise/nn/ctx.hpp"
#include "headwise/nn/visit.hpp"

namespace headwise {

/// A module's forward pass, to be checked: call(ctx, inputs) -> Var<T>, where inputs is a
/// std::vector<Var<T>>, or call(ctx) where there are none (a model's loss on some ids). Each call
/// has a stream of random numbers that starts anew, so dropout drops the same every time.
/// The subject refers to the module, which must stay where it is.
template <Real T, class M, class Call>
Subject<T> subject_of(M& module, Call call, std::vector<Tensor<T>> inputs = {},
                      std::uint64_t seed = 1) {
  Subject<T> subject;
  for_each_param(module, [&](const std::string& name, const Param<T>& p) {
    subject.params.emplace_back(name, &p);
  });
  subject.forward = [call, inputs = std::move(inputs), seed](Tape<T>& tape) -> Var<T> {
    Rng random = stream(seed, Purpose::dropout);
    const Ctx<T> ctx{.tape = &tape, .random = &random};
    if constexpr (std::invocable<const Call&, const Ctx<T>&>) {
      return call(ctx);
    } else {
      std::vector<Var<T>> leaves;
      for (const Tensor<T>& x : inputs) leaves.push_back(tape.leaf(x));
      return call(ctx, std::as_const(leaves));
    }
  };
  return subject;
}

/// Checks the gradients of a module with respect to its inputs, "input 0", ..., and every
/// parameter, by its name; see gradcheck() and subject_of().
///   gradcheck_module(layer, [&](const Ctx<double>& ctx, auto& x) { return layer(ctx, x[0]); },
///                    {x});
///   gradcheck_module(model, [&](const Ctx<double>& ctx) { return model.loss(ctx, ids, targets); })
/// A key's bias is zero in theory: softmax does not notice a shift of a whole row of scores.
template <Real T = double, class M, class Call>
GradReport gradcheck_module(M& module, Call call,
                            std::type_identity_t<std::vector<Tensor<T>>> inputs = {},
                            GradOptions options = {}) {
  options.zero_in_theory.emplace_back("w_k.bias");
  return gradcheck(subject_of<T>(module, std::move(call), std::move(inputs), options.seed),
                   options);
}

/// Adds normal noise to every parameter, always the same for a seed: where no bias is 0 and no gain
/// is 1, a mistake in what is done with them shows.
template <class M>
void roughen(M& module, double std, std::uint64_t seed) {
  Rng rng(seed);
  for_each_param(module, [&]<Real T>(const std::string&, Param<T>& p) {
    const Var<T> noise = normal_tensor<T>(p.value.shape(), std, rng);
    p.value = (Var<T>(p.value) + noise).value();
  });
}

}  // namespace headwise
