#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/unary.hpp"

namespace headwise {

template <Real T>
Var<T> neg(const Var<T>& x) {
  require(!x.absent(), "neg: there is no input");
  const auto negate = [](T v) { return -v; };
  return record("neg", map_elements(x.value(), negate), {x},
                [negate](const Tensor<T>& dy, Grads<T>& d) { d.add(0, map_elements(dy, negate)); });
}

template Var<float> neg(const Var<float>&);
template Var<double> neg(const Var<double>&);

OpSpec specs::neg() {
  return {"neg", {op_case("matrix", {{3, 5}}, any, [](auto& x) { return headwise::neg(x[0]); })}};
}

}  // namespace headwise
