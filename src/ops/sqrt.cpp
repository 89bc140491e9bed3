#include <cmath>

#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/unary.hpp"

namespace headwise {

template <Real T>
Var<T> sqrt(const Var<T>& x) {
  return unary<From::result>(
      "sqrt", x, [](T v) { return std::sqrt(v); }, [](T y) { return T(0.5) / y; });
}

template Var<float> sqrt(const Var<float>&);
template Var<double> sqrt(const Var<double>&);

OpSpec specs::sqrt() {
  return {"sqrt",
          {op_case("matrix", {{3, 5}}, positive, [](auto& x) { return headwise::sqrt(x[0]); })}};
}

}  // namespace headwise
