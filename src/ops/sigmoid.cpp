#include <cmath>

#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/unary.hpp"

namespace headwise {
namespace {

/// The exponential is of a negative number, so it cannot overflow.
template <Real T>
T sigmoid_of(T x) {
  const T e = std::exp(-std::fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

}  // namespace

template <Real T>
Var<T> sigmoid(const Var<T>& x) {
  return unary<From::result>("sigmoid", x, sigmoid_of<T>, [](T y) { return y * (1 - y); });
}

template Var<float> sigmoid(const Var<float>&);
template Var<double> sigmoid(const Var<double>&);

OpSpec specs::sigmoid() {
  return {"sigmoid",
          {op_case("matrix", {{3, 5}}, any, [](auto& x) { return headwise::sigmoid(x[0]); })}};
}

}  // namespace headwise
