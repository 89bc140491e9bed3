#include <algorithm>

#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "kernels/kernels.hpp"

namespace headwise {
namespace {

Shape with_width(const Shape& ids, Index c) {
  std::vector<Index> sizes(ids.sizes().begin(), ids.sizes().end());
  sizes.push_back(c);
  return Shape(std::span<const Index>(sizes));
}

}  // namespace

template <Real T>
Var<T> embedding(const Var<T>& table, const Ids& ids) {
  require(table.shape().rank() == 2, "embedding: table {} is not (V,C)", table.shape());
  ids.check("embedding");
  const Index v = table.shape()[0], c = table.shape()[1];
  Tensor<T> y = Tensor<T>::uninitialized(with_width(ids.shape, c));
  T* out = y.data();
  const T* rows = table.value().data();
  for (std::size_t i = 0; i < ids.values.size(); ++i) {
    const Id id = ids.values[i];
    require(id >= 0 && id < v, "embedding: id {} at position {} is not in [0, {}]", id, i, v - 1);
    out = std::copy_n(rows + id * c, c, out);
  }

  return record("embedding", std::move(y), {table},
                [ids = ids.values, c](const Tensor<T>& dy, Grads<T>& d) {
                  auto* dtable = d[0];
                  if (dtable == nullptr) return;
                  T* to = dtable->data();
                  const T* up = dy.data();
                  for (const Id id : ids) {  // in order: an id may come twice
                    kernels::add(up, to + id * c, c);
                    up += c;
                  }
                });
}

template Var<float> embedding(const Var<float>&, const Ids&);
template Var<double> embedding(const Var<double>&, const Ids&);

OpSpec specs::embedding() {
  const auto call = [](auto& x) {
    return headwise::embedding(x[0], Ids({2, 3}, {0, 2, 2, 4, 2, 0}));
  };
  return {"embedding", {op_case("repeated ids", {{5, 3}}, any, call)}};
}

}  // namespace headwise
