#include <cmath>

#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/unary.hpp"

namespace headwise {

template <Real T>
Var<T> log(const Var<T>& x) {
  return unary<From::input>(
      "log", x, [](T v) { return std::log(v); }, [](T v) { return 1 / v; });
}

template Var<float> log(const Var<float>&);
template Var<double> log(const Var<double>&);

OpSpec specs::log() {
  return {"log",
          {op_case("matrix", {{3, 5}}, positive, [](auto& x) { return headwise::log(x[0]); })}};
}

}  // namespace headwise
