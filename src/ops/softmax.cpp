#include "headwise/core/parallel.hpp"
#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "kernels/kernels.hpp"

namespace headwise {

template <Real T>
Var<T> softmax(const Var<T>& x) {
  require(x.shape().rank() >= 1, "softmax: input {} is not (..., C)", x.shape());
  const Index rows = x.shape().rows(), c = x.shape().last();
  Tensor<T> y = x.value();
  T* p = y.data();
  parallel_rows(rows, c, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) kernels::softmax(p + r * c, c);
  });

  return record("softmax", y, {x}, [y, rows, c](const Tensor<T>& dy, Grads<T>& d) {
    Tensor<T> dx = dy;
    T* to = dx.data();
    parallel_rows(rows, c, [&](Index begin, Index end) {
      for (Index r = begin; r < end; ++r)
        kernels::softmax_backward(y.data() + r * c, to + r * c, c);
    });
    d.add(0, std::move(dx));
  });
}

template Var<float> softmax(const Var<float>&);
template Var<double> softmax(const Var<double>&);

OpSpec specs::softmax() {
  return {"softmax",
          {op_case("rows", {{2, 3, 5}}, any, [](auto& x) { return headwise::softmax(x[0]); })}};
}

}  // namespace headwise
