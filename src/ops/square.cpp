#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/unary.hpp"

namespace headwise {

template <Real T>
Var<T> square(const Var<T>& x) {
  return unary<From::input>(
      "square", x, [](T v) { return v * v; }, [](T v) { return 2 * v; });
}

template Var<float> square(const Var<float>&);
template Var<double> square(const Var<double>&);

OpSpec specs::square() {
  return {"square",
          {op_case("matrix", {{3, 5}}, any, [](auto& x) { return headwise::square(x[0]); })}};
}

}  // namespace headwise
