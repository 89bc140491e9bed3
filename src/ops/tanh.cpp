#include <cmath>

#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/unary.hpp"

namespace headwise {

template <Real T>
Var<T> tanh(const Var<T>& x) {
  return unary<From::result>(
      "tanh", x, [](T v) { return std::tanh(v); }, [](T y) { return 1 - y * y; });
}

template Var<float> tanh(const Var<float>&);
template Var<double> tanh(const Var<double>&);

OpSpec specs::tanh() {
  return {"tanh", {op_case("matrix", {{3, 5}}, any, [](auto& x) { return headwise::tanh(x[0]); })}};
}

}  // namespace headwise
