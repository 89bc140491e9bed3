#include <cmath>

#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/unary.hpp"

namespace headwise {

template <Real T>
Var<T> abs(const Var<T>& x) {
  return unary<From::input>(
      "abs", x, [](T v) { return std::fabs(v); },
      [](T v) { return v == 0 ? 0 : std::copysign(T(1), v); });
}

template Var<float> abs(const Var<float>&);
template Var<double> abs(const Var<double>&);

OpSpec specs::abs() {
  return {
      "abs",
      {op_case("matrix", {{3, 5}}, away_from_zero, [](auto& x) { return headwise::abs(x[0]); })}};
}

}  // namespace headwise
