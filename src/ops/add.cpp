#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/broadcast.hpp"

namespace headwise {

template <Real T>
Var<T> add(const Var<T>& a, const Var<T>& b) {
  Tensor<T> y = broadcast("add", a.value(), b.value(), [](T x, T z) { return x + z; });
  return record("add", std::move(y), {a, b},
                [sa = a.shape(), sb = b.shape()](const Tensor<T>& dy, Grads<T>& d) {
                  if (d.wants(0)) d.add(0, sum_to(sa, dy));
                  if (d.wants(1)) d.add(1, sum_to(sb, dy));
                });
}

template Var<float> add(const Var<float>&, const Var<float>&);
template Var<double> add(const Var<double>&, const Var<double>&);

OpSpec specs::add() {
  const auto call = [](auto& x) { return headwise::add(x[0], x[1]); };
  return {"add",
          {op_case("same shape", {{3, 4}, {3, 4}}, any, call),
           op_case("rows", {{2, 3, 4}, {4}}, any, call),
           op_case("both ways", {{3, 1}, {2, 1, 4}}, any, call),
           op_case("scalar", {{}, {2, 3}}, any, call)}};
}

}  // namespace headwise
