#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/reduce.hpp"

namespace headwise {

template <Real T>
Var<T> mean(const Var<T>& x, const std::vector<Index>& axes, bool keep) {
  require(!x.absent(), "mean: there is no input");
  const Reduction to("mean", x.shape(), axes, keep);
  const Index n = to.n();
  require(n > 0, "mean: {} has no elements", x.shape());
  return record("mean", row_sums(to, x.value(), n), {x}, [to, n](const Tensor<T>& dy, Grads<T>& d) {
    d.add(0, row_sums_backward(to, dy, n));
  });
}

template Var<float> mean(const Var<float>&, const std::vector<Index>&, bool);
template Var<double> mean(const Var<double>&, const std::vector<Index>&, bool);

OpSpec specs::mean() {
  return {
      "mean",
      {op_case("matrix", {{3, 5}}, any, [](auto& x) { return headwise::mean(x[0]); }),
       op_case("last axis", {{2, 3, 4}}, any, [](auto& x) { return headwise::mean(x[0], {-1}); }),
       op_case("outer axes, kept", {{2, 3, 4}}, any,
               [](auto& x) {
                 return headwise::mean(x[0], {1, 0}, true);
               }),
       op_case("every other axis", {{2, 3, 2, 2}}, any, [](auto& x) {
         return headwise::mean(x[0], {0, 2});
       })}};
}

}  // namespace headwise
