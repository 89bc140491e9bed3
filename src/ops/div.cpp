#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/broadcast.hpp"

namespace headwise {
namespace {

template <Real T>
Tensor<T> quotient(const Tensor<T>& a, const Tensor<T>& b) {
  return broadcast("div", a, b, [](T x, T z) { return x / z; });
}

}  // namespace

template <Real T>
Var<T> div(const Var<T>& a, const Var<T>& b) {
  Tensor<T> y = quotient(a.value(), b.value());
  return record(
      "div", y, {a, b}, [sa = a.shape(), b = b.value(), y](const Tensor<T>& dy, Grads<T>& d) {
        const Tensor<T> da = quotient(dy, b);  // and d y / d b = -y / b
        if (d.wants(0)) d.add(0, sum_to(sa, da));
        if (!d.wants(1)) return;
        d.add(1, sum_to(b.shape(), broadcast("div", da, y, [](T u, T v) { return -u * v; })));
      });
}

template Var<float> div(const Var<float>&, const Var<float>&);
template Var<double> div(const Var<double>&, const Var<double>&);

OpSpec specs::div() {
  const auto call = [](auto& x) { return headwise::div(x[0], x[1]); };
  return {"div",
          {op_case("same shape", {{3, 4}, {3, 4}}, away_from_zero, call),
           op_case("rows", {{2, 3, 4}, {4}}, away_from_zero, call),
           op_case("both ways", {{3, 1}, {2, 1, 4}}, away_from_zero, call),
           op_case("scalar", {{}, {2, 3}}, away_from_zero, call)}};
}

}  // namespace headwise
