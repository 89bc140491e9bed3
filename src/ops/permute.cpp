#include "ops/permute.hpp"
#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/axes.hpp"

namespace headwise {

template <Real T>
Var<T> permute(const Var<T>& x, const std::vector<Index>& axes) {
  require(!x.absent(), "permute: there is no input");
  const std::vector<Index> order = axes_of("permute", x.shape(), axes);
  require(static_cast<Index>(order.size()) == x.shape().rank(),
          "permute: ({}) are not all axes of {}", fmt::join(axes, ","), x.shape());
  return record(
      "permute", permuted(x.value(), order), {x},
      [back = inverse(order)](const Tensor<T>& dy, Grads<T>& d) { d.add(0, permuted(dy, back)); });
}

template Var<float> permute(const Var<float>&, const std::vector<Index>&);
template Var<double> permute(const Var<double>&, const std::vector<Index>&);

OpSpec specs::permute() {
  return {
      "permute",
      {op_case("heads", {{2, 3, 2, 4}}, any,
               [](auto& x) {
                 return headwise::permute(x[0], {0, 2, 1, 3});
               }),
       op_case("round", {{2, 3, 4}}, any,
               [](auto& x) {
                 return headwise::permute(x[0], {2, 0, 1});
               }),
       op_case("as it is", {{2, 3}}, any,
               [](auto& x) {
                 return headwise::permute(x[0], {0, 1});
               }),
       op_case("transpose", {{2, 3, 4}}, any, [](auto& x) { return headwise::transpose(x[0]); })}};
}

}  // namespace headwise
