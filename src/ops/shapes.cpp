// Functions that are nothing but a few ops on shapes.
#include "headwise/ops/ops.hpp"
#include "ops/axes.hpp"

namespace headwise {

template <Real T>
Var<T> transpose(const Var<T>& x, Index axis_a, Index axis_b) {
  const Index a = axis_of("transpose", x.shape(), axis_a);
  const Index b = axis_of("transpose", x.shape(), axis_b);
  std::vector<Index> order;
  for (Index i = 0; i < x.shape().rank(); ++i) order.push_back(i == a ? b : i == b ? a : i);
  return permute(x, order);
}

template <Real T>
Var<T> stack(const std::vector<Var<T>>& xs, Index axis) {
  require(!xs.empty(), "stack: there is no input");
  const Shape& first = xs.front().shape();
  require(axis >= -first.rank() - 1 && axis <= first.rank(),
          "stack: tensors {} cannot be stacked along an axis {}", first, axis);
  std::vector<Var<T>> rows;
  for (const Var<T>& x : xs) {
    require(x.shape() == first, "stack: {} and {} are not of one shape", first, x.shape());
    std::vector<Index> sizes(first.sizes().begin(), first.sizes().end());
    sizes.insert(sizes.begin() + (axis < 0 ? axis + first.rank() + 1 : axis), 1);
    rows.push_back(reshape(x, sizes));
  }
  return concat(rows, axis);
}

template <Real T>
Var<T> split_heads(const Var<T>& x, Index heads) {
  const Shape& s = x.shape();
  require(s.rank() == 3 && heads > 0 && s.last() % heads == 0,
          "split_heads: {} is not (B,T,C) with C a multiple of {} heads", s, heads);
  return permute(reshape(x, {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
}

template <Real T>
Var<T> concat_heads(const Var<T>& x) {
  const Shape& s = x.shape();
  require(s.rank() == 4, "concat_heads: {} is not (B,H,T,D)", s);
  return reshape(permute(x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
}

template Var<float> transpose(const Var<float>&, Index, Index);
template Var<double> transpose(const Var<double>&, Index, Index);
template Var<float> stack(const std::vector<Var<float>>&, Index);
template Var<double> stack(const std::vector<Var<double>>&, Index);
template Var<float> split_heads(const Var<float>&, Index);
template Var<double> split_heads(const Var<double>&, Index);
template Var<float> concat_heads(const Var<float>&);
template Var<double> concat_heads(const Var<double>&);

}  // namespace headwise
