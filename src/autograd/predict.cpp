#include "autograd/predict.hpp"

#include <algorithm>
#include <numeric>

#include "autograd/axes.hpp"

namespace headwise {

Values LocalGradient::of_weights(const Values& other) const {
  Values sum(numeric.size(), 0.0);
  for (std::size_t e = 0; e < sum.size(); ++e)
    for (std::size_t o = 0; o < other.size(); ++o) sum[e] += row(e)[o] * other[o];
  return sum;
}

Values LocalGradient::of_part(const Part& part) const {
  Values some = w;
  for (std::size_t o = 0; o < some.size(); ++o)
    if (!part[o]) some[o] = 0;
  return of_weights(some);
}

Values LocalGradient::exchanged(Index p, Index q) const {
  const Index out_stride = stride_of(out, p), in_stride = stride_of(in, q);
  Values sum(numeric.size(), 0.0);
  for (Index e = 0; e < in.size(); ++e)
    for (Index o = 0; o < out.size(); ++o) {
      const Index of_y = index_along(out, p, o), of_x = index_along(in, q, e);
      const Index e2 = e + (of_y - of_x) * in_stride, o2 = o + (of_x - of_y) * out_stride;
      sum[static_cast<std::size_t>(e)] +=
          row(static_cast<std::size_t>(e2))[o2] * w[static_cast<std::size_t>(o)];
    }
  return sum;
}

bool LocalGradient::broadcast_along(Index axis) const {
  const Index from_end = axis - out.rank();  // -1: the last
  if (in.rank() >= -from_end && in[from_end] != 1) return false;
  bool fits = in.rank() <= out.rank();
  for (Index i = -1; fits && i >= -in.rank(); --i) fits = in[i] == 1 || in[i] == out[i];
  return fits || (from_end < -2 && reaches_all_along(axis));
}

bool LocalGradient::reaches_all_along(Index axis) const {
  const Index stride = stride_of(out, axis);
  for (std::size_t e = 0; e < numeric.size(); ++e)
    for (Index o = 0; o < out.size(); ++o)
      if (const Index k = index_along(out, axis, o);
          (row(e)[o] != 0) != (row(e)[o - k * stride] != 0))
        return false;
  return true;
}

std::vector<std::vector<Index>> orders(Index rank) {
  std::vector<std::vector<Index>> all;
  if (rank < 2 || rank > 4) return all;
  std::vector<Index> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  while (std::next_permutation(order.begin(), order.end())) all.push_back(order);
  return all;
}

Values permuted(const Values& x, const Shape& shape, const std::vector<Index>& order) {
  Values y(x.size());
  std::vector<Index> sizes, strides;
  for (const Index axis : order) {
    sizes.push_back(shape[axis]);
    strides.push_back(stride_of(shape, axis));
  }
  for (std::size_t i = 0; i < y.size(); ++i) {
    auto rest = static_cast<Index>(i);
    Index from = 0;
    for (std::size_t axis = sizes.size(); axis-- > 0; rest /= sizes[axis])
      from += rest % sizes[axis] * strides[axis];
    y[i] = x[static_cast<std::size_t>(from)];
  }
  return y;
}

Values shifted(const Values& x, const Shape& shape, Index axis, Index by, bool around) {
  const Index stride = stride_of(shape, axis), size = shape[axis];
  Values y(x.size(), 0.0);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto e = static_cast<Index>(i);
    const Index at = index_along(shape, axis, e), from = at - by;
    if (!around && (from < 0 || from >= size)) continue;
    y[i] = x[static_cast<std::size_t>(e + ((from + size) % size - at) * stride)];
  }
  return y;
}

}  // namespace headwise
