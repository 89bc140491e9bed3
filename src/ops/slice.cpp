#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/axes.hpp"

namespace headwise {

template <Real T>
Var<T> slice(const Var<T>& x, Index axis, Index begin, Index end) {
  require(!x.absent(), "slice: there is no input");
  const Shape& shape = x.shape();
  const Index a = axis_of("slice", shape, axis);
  require(begin >= 0 && begin <= end && end <= shape[a],
          "slice: [{}, {}) is not within axis {} of {}", begin, end, axis, shape);
  const Index rows = size_before(shape, a), inner = size_after(shape, a);
  const Index whole = shape[a] * inner, part = (end - begin) * inner, first = begin * inner;
  Tensor<T> y = Tensor<T>::uninitialized(with_size(shape, a, end - begin));
  copy_runs(x.value().data() + first, whole, y.data(), part, rows, part);

  return record("slice", std::move(y), {x}, [=](const Tensor<T>& dy, Grads<T>& d) {
    T* to = d[0]->data() + first;
    const T* up = dy.data();
    parallel_rows(rows, part, [&](Index from, Index until) {
      for (Index r = from; r < until; ++r)
        for (Index i = 0; i < part; ++i) to[r * whole + i] += up[r * part + i];
    });
  });
}

template Var<float> slice(const Var<float>&, Index, Index, Index);
template Var<double> slice(const Var<double>&, Index, Index, Index);

OpSpec specs::slice() {
  return {
      "slice",
      {op_case("first axis", {{4, 3}}, any, [](auto& x) { return headwise::slice(x[0], 0, 1, 3); }),
       op_case("middle axis", {{2, 5, 3}}, any,
               [](auto& x) { return headwise::slice(x[0], 1, 0, 2); }),
       op_case("last axis", {{2, 3, 4}}, any,
               [](auto& x) { return headwise::slice(x[0], -1, 3, 4); })}};
}

}  // namespace headwise
