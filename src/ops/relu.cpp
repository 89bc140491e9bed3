#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/unary.hpp"

namespace headwise {

template <Real T>
Var<T> relu(const Var<T>& x) {
  return unary<From::result>(
      "relu", x, [](T v) { return v <= 0 ? 0 : v; }, [](T y) { return T(y <= 0 ? 0 : 1); });
}

template Var<float> relu(const Var<float>&);
template Var<double> relu(const Var<double>&);

OpSpec specs::relu() {
  return {
      "relu",
      {op_case("matrix", {{3, 5}}, away_from_zero, [](auto& x) { return headwise::relu(x[0]); })}};
}

}  // namespace headwise
