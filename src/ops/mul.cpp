#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/broadcast.hpp"

namespace headwise {
namespace {

template <Real T>
Tensor<T> product(const Tensor<T>& a, const Tensor<T>& b) {
  return broadcast("mul", a, b, [](T x, T z) { return x * z; });
}

}  // namespace

template <Real T>
Var<T> mul(const Var<T>& a, const Var<T>& b) {
  return record("mul", product(a.value(), b.value()), {a, b},
                [a = a.value(), b = b.value()](const Tensor<T>& dy, Grads<T>& d) {
                  if (d.wants(0)) d.add(0, sum_to(a.shape(), product(dy, b)));
                  if (d.wants(1)) d.add(1, sum_to(b.shape(), product(dy, a)));
                });
}

template Var<float> mul(const Var<float>&, const Var<float>&);
template Var<double> mul(const Var<double>&, const Var<double>&);

OpSpec specs::mul() {
  const auto call = [](auto& x) { return headwise::mul(x[0], x[1]); };
  return {"mul",
          {op_case("same shape", {{3, 4}, {3, 4}}, any, call),
           op_case("square", {{3, 4}}, any, [](auto& x) { return headwise::mul(x[0], x[0]); }),
           op_case("rows", {{2, 3, 4}, {4}}, any, call),
           op_case("both ways", {{3, 1}, {2, 1, 4}}, any, call),
           op_case("scalar", {{2, 3}, {}}, any, call)}};
}

}  // namespace headwise
