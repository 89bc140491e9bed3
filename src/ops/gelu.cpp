#include "ops/gelu.hpp"
#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"

namespace headwise {

template <Real T>
Var<T> gelu(const Var<T>& x, Gelu kind) {
  require(!x.absent(), "gelu: there is no input");
  Tensor<T> y = Tensor<T>::uninitialized(x.shape()), slope;
  if (x.tracked()) slope = Tensor<T>::uninitialized(x.shape());
  gelu_of(kind, x.value(), y, slope);

  return record("gelu", std::move(y), {x}, [slope](const Tensor<T>& dy, Grads<T>& d) {
    Tensor<T> dx = Tensor<T>::uninitialized(dy.shape());
    const T *up = dy.data(), *s = slope.data();
    T* to = dx.data();
    parallel_rows(dy.size(), 1, [&](Index begin, Index end) {
      kernels::multiply(up + begin, s + begin, to + begin, end - begin);
    });
    d.add(0, std::move(dx));
  });
}

template Var<float> gelu(const Var<float>&, Gelu);
template Var<double> gelu(const Var<double>&, Gelu);

OpSpec specs::gelu() {
  return {
      "gelu",
      {op_case("exact", {{3, 5}}, any, [](auto& x) { return headwise::gelu(x[0], Gelu::exact); }),
       op_case("tanh", {{3, 5}}, any, [](auto& x) { return headwise::gelu(x[0], Gelu::tanh); })}};
}

}  // namespace headwise
