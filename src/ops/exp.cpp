#include <cmath>

#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/unary.hpp"

namespace headwise {

template <Real T>
Var<T> exp(const Var<T>& x) {
  return unary<From::result>(
      "exp", x, [](T v) { return std::exp(v); }, [](T y) { return y; });
}

template Var<float> exp(const Var<float>&);
template Var<double> exp(const Var<double>&);

OpSpec specs::exp() {
  return {"exp", {op_case("matrix", {{3, 5}}, any, [](auto& x) { return headwise::exp(x[0]); })}};
}

}  // namespace headwise
