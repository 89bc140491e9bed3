#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/reduce.hpp"

namespace headwise {

template <Real T>
Var<T> sum(const Var<T>& x, const std::vector<Index>& axes, bool keep) {
  require(!x.absent(), "sum: there is no input");
  const Reduction to("sum", x.shape(), axes, keep);
  return record("sum", row_sums(to, x.value(), 1), {x},
                [to](const Tensor<T>& dy, Grads<T>& d) { d.add(0, row_sums_backward(to, dy, 1)); });
}

template Var<float> sum(const Var<float>&, const std::vector<Index>&, bool);
template Var<double> sum(const Var<double>&, const std::vector<Index>&, bool);

OpSpec specs::sum() {
  return {
      "sum",
      {op_case("matrix", {{3, 5}}, any, [](auto& x) { return headwise::sum(x[0]); }),
       op_case("last axis", {{2, 3, 4}}, any, [](auto& x) { return headwise::sum(x[0], {-1}); }),
       op_case("outer axes, kept", {{2, 3, 4}}, any,
               [](auto& x) {
                 return headwise::sum(x[0], {1, 0}, true);
               }),
       op_case("every other axis", {{2, 3, 2, 2}}, any, [](auto& x) {
         return headwise::sum(x[0], {0, 2});
       })}};
}

}  // namespace headwise
