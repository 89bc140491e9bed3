#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/broadcast.hpp"

namespace headwise {

template <Real T>
Var<T> sub(const Var<T>& a, const Var<T>& b) {
  Tensor<T> y = broadcast("sub", a.value(), b.value(), [](T x, T z) { return x - z; });
  return record("sub", std::move(y), {a, b},
                [sa = a.shape(), sb = b.shape()](const Tensor<T>& dy, Grads<T>& d) {
                  if (d.wants(0)) d.add(0, sum_to(sa, dy));
                  if (!d.wants(1)) return;
                  Tensor<T> db = sum_to(sb, dy);
                  T* x = db.data();
                  for (Index i = 0; i < db.size(); ++i) x[i] = -x[i];
                  d.add(1, std::move(db));
                });
}

template Var<float> sub(const Var<float>&, const Var<float>&);
template Var<double> sub(const Var<double>&, const Var<double>&);

OpSpec specs::sub() {
  const auto call = [](auto& x) { return headwise::sub(x[0], x[1]); };
  return {"sub",
          {op_case("same shape", {{3, 4}, {3, 4}}, any, call),
           op_case("rows", {{4}, {2, 3, 4}}, any, call),
           op_case("both ways", {{3, 1}, {2, 1, 4}}, any, call)}};
}

}  // namespace headwise
