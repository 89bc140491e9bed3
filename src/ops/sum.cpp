#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "kernels/kernels.hpp"

namespace headwise {

template <Real T>
Var<T> sum(const Var<T>& x) {
  require(!x.absent(), "sum: there is no input");
  const auto total = static_cast<T>(kernels::sum(x.value().data(), x.value().size()));
  return record("sum", Tensor<T>({}, {total}), {x},
                [shape = x.shape()](const Tensor<T>& dy, Grads<T>& d) {
                  if (d.wants(0)) d.add(0, Tensor<T>::full(shape, dy.item()));
                });
}

template Var<float> sum(const Var<float>&);
template Var<double> sum(const Var<double>&);

OpSpec specs::sum() {
  return {"sum", {op_case("matrix", {{3, 5}}, any, [](auto& x) { return headwise::sum(x[0]); })}};
}

}  // namespace headwise
