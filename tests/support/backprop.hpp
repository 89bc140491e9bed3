// One forward and backward pass of a function of some inputs, in either precision.
#pragma once

#include <concepts>
#include <type_traits>
#include <vector>

#include "headwise/autograd/gradcheck.hpp"
#include "support/threads.hpp"

namespace headwise::test {

/// A result y and, for each input, the gradient of sum(dy y).
template <Real T>
struct Pass {
  Tensor<T> y;
  std::vector<Tensor<T>> d;
};

/// x in precision T.
template <Real T, Real U>
Tensor<T> as(const Tensor<U>& x) {
  if constexpr (std::same_as<T, U>)
    return x;
  else
    return convert<T>(x);
}

template <Real T>
std::vector<Tensor<T>> all_as(const std::vector<Tensor<double>>& xs) {
  std::vector<Tensor<T>> out;
  for (const Tensor<double>& x : xs) out.push_back(as<T>(x));
  return out;
}

/// Runs f on leaves and goes back from its result with dy; an empty dy: the gradient check's
/// projection.
template <Real T>
Pass<T> pass(const std::type_identity_t<Function<T>>& f, const std::vector<Tensor<T>>& inputs,
             Tensor<T> dy = {}) {
  Tape<T> tape;
  std::vector<Var<T>> leaves;
  for (const Tensor<T>& x : inputs) leaves.push_back(tape.leaf(x));
  const Var<T> y = f(leaves);
  tape.backward(y, dy.empty() ? as<T>(projection(y.shape())) : dy);
  Pass<T> result{y.value(), {}};
  for (const Var<T>& x : leaves) result.d.push_back(tape.grad(x));
  return result;
}

}  // namespace headwise::test
