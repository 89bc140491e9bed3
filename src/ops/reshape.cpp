#include <algorithm>

#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"

namespace headwise {
namespace {

/// The sizes, with what is left of x in the place of a -1.
Shape filled(const Shape& x, std::vector<Index> sizes) {
  const auto open = std::find(sizes.begin(), sizes.end(), -1);
  if (open == sizes.end()) return Shape(std::span<const Index>(sizes));
  const std::vector<Index> given = sizes;
  *open = 1;
  require(std::find(sizes.begin(), sizes.end(), -1) == sizes.end(),
          "reshape: ({}) has more than one -1", fmt::join(given, ","));
  const Index rest = Shape(std::span<const Index>(sizes)).size();
  require(rest > 0 && x.size() % rest == 0, "reshape: no size fits the -1 of ({}) and {}",
          fmt::join(given, ","), x);
  *open = x.size() / rest;
  return Shape(std::span<const Index>(sizes));
}

}  // namespace

template <Real T>
Var<T> reshape(const Var<T>& x, const std::vector<Index>& sizes) {
  require(!x.absent(), "reshape: there is no input");
  return record(
      "reshape", x.value().reshape(filled(x.shape(), sizes)), {x},
      [shape = x.shape()](const Tensor<T>& dy, Grads<T>& d) { d.add(0, dy.reshape(shape)); });
}

template Var<float> reshape(const Var<float>&, const std::vector<Index>&);
template Var<double> reshape(const Var<double>&, const std::vector<Index>&);

OpSpec specs::reshape() {
  return {"reshape",
          {op_case("matrix", {{2, 3, 2}}, any,
                   [](auto& x) {
                     return headwise::reshape(x[0], {4, 3});
                   }),
           op_case("one size open", {{2, 3, 2}}, any, [](auto& x) {
             return headwise::reshape(x[0], {3, -1, 1});
           })}};
}

}  // namespace headwise
