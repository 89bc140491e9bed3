#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "kernels/kernels.hpp"

namespace headwise {

template <Real T>
Var<T> mean(const Var<T>& x) {
  require(!x.absent(), "mean: there is no input");
  const Index n = x.value().size();
  require(n > 0, "mean: {} has no elements", x.shape());
  const double average = kernels::sum(x.value().data(), n) / static_cast<double>(n);
  return record("mean", Tensor<T>({}, {static_cast<T>(average)}), {x},
                [shape = x.shape()](const Tensor<T>& dy, Grads<T>& d) {
                  if (d.wants(0))
                    d.add(0, Tensor<T>::full(shape, dy.item() / static_cast<T>(shape.size())));
                });
}

template Var<float> mean(const Var<float>&);
template Var<double> mean(const Var<double>&);

OpSpec specs::mean() {
  return {"mean", {op_case("matrix", {{3, 5}}, any, [](auto& x) { return headwise::mean(x[0]); })}};
}

}  // namespace headwise
