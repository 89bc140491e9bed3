#include <cmath>

#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/unary.hpp"

namespace headwise {

template <Real T>
Var<T> pow(const Var<T>& x, double exponent) {
  const T p = static_cast<T>(exponent);
  return unary<From::input>(
      "pow", x, [p](T v) { return std::pow(v, p); },
      [p](T v) { return p == 0 ? 0 : p * std::pow(v, p - 1); });
}

template Var<float> pow(const Var<float>&, double);
template Var<double> pow(const Var<double>&, double);

OpSpec specs::pow() {
  return {"pow",
          {op_case("1.5", {{3, 5}}, positive, [](auto& x) { return headwise::pow(x[0], 1.5); }),
           op_case("-0.5", {{3, 5}}, positive, [](auto& x) { return headwise::pow(x[0], -0.5); }),
           op_case("3", {{3, 5}}, away_from_zero, [](auto& x) { return headwise::pow(x[0], 3); })}};
}

}  // namespace headwise
