#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/axes.hpp"

namespace headwise {

template <Real T>
Var<T> concat(const std::vector<Var<T>>& xs, Index axis) {
  require(!xs.empty(), "concat: there is no input");
  const Shape& first = xs.front().shape();
  const Index a = axis_of("concat", first, axis);
  std::vector<Index> sizes;  // along the axis
  Index total = 0;
  for (const Var<T>& x : xs) {
    require(!x.absent(), "concat: input {} is not there", sizes.size());
    require(x.shape().rank() == first.rank() && with_size(x.shape(), a, first[a]) == first,
            "concat: {} and {} differ not only in axis {}", first, x.shape(), axis);
    sizes.push_back(x.shape()[a]);
    total += sizes.back();
  }
  const Index rows = size_before(first, a), inner = size_after(first, a), whole = total * inner;
  Tensor<T> y = Tensor<T>::uninitialized(with_size(first, a, total));
  T* out = y.data();
  for (const Var<T>& x : xs) {
    const Index part = x.shape()[a] * inner;
    copy_runs(x.value().data(), part, out, whole, rows, part);
    out += part;
  }

  return record("concat", std::move(y), xs, [=](const Tensor<T>& dy, Grads<T>& d) {
    const T* up = dy.data();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const Index part = sizes[i] * inner;
      if (d.wants(static_cast<Index>(i))) {
        Tensor<T> dx = Tensor<T>::uninitialized(with_size(dy.shape(), a, sizes[i]));
        copy_runs(up, whole, dx.data(), part, rows, part);
        d.add(static_cast<Index>(i), std::move(dx));
      }
      up += part;
    }
  });
}

template Var<float> concat(const std::vector<Var<float>>&, Index);
template Var<double> concat(const std::vector<Var<double>>&, Index);

OpSpec specs::concat() {
  return {
      "concat",
      {op_case("three, first axis", {{2, 3}, {1, 3}, {4, 3}}, any,
               [](auto& x) { return headwise::concat(x, 0); }),
       op_case("two, last axis", {{2, 3, 1}, {2, 3, 2}}, any,
               [](auto& x) { return headwise::concat(x, -1); }),
       op_case("one with itself", {{2, 2, 3}}, any,
               [](auto& x) {
                 using Vars = std::remove_cvref_t<decltype(x)>;
                 return headwise::concat(Vars{x[0], x[0]}, 1);
               }),
       op_case("a stack", {{2, 3}, {2, 3}}, any, [](auto& x) { return headwise::concat(x, 1); })}};
}

}  // namespace headwise
