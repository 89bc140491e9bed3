// NumPy's broadcasting, in one place: elementwise functions of two tensors, and the sums that undo
// the repetition in backward.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "headwise/core/parallel.hpp"
#include "headwise/core/tensor.hpp"
#include "kernels/kernels.hpp"

namespace headwise {

/// The shape both broadcast to, without the last `inner` axes. Throws ShapeError when there is
/// none; `op` begins the message.
inline Shape broadcast_shape(std::string_view op, const Shape& a, const Shape& b, Index inner = 0) {
  std::array<Index, Shape::kMaxRank> sizes{};
  const Index rank = std::max(a.rank(), b.rank());
  for (Index i = inner + 1; i <= rank; ++i) {
    const Index m = i <= a.rank() ? a[-i] : 1, n = i <= b.rank() ? b[-i] : 1;
    require(m == n || m == 1 || n == 1, "{}: {} and {} do not broadcast: {} against {}", op, a, b,
            m, n);
    sizes[static_cast<std::size_t>(rank - i)] = m == 1 ? n : m;
  }
  return Shape(std::span<const Index>(sizes.data(), static_cast<std::size_t>(rank - inner)));
}

/// Whether the last sizes of `whole` are those of `part`.
inline bool ends_with(const Shape& whole, const Shape& part) {
  const auto a = whole.sizes(), b = part.sizes();
  return a.size() >= b.size() && std::equal(b.begin(), b.end(), a.end() - part.rank());
}

/// Walks a tensor of shape `whole` row-major, from element `begin` on, and tells where each element
/// sits in one of shape `part` that broadcasts to it.
class BroadcastWalk {
 public:
  BroadcastWalk(const Shape& part, const Shape& whole, Index begin = 0) : whole_(whole) {
    Index stride = 1;
    for (Index i = 1; i <= part.rank(); ++i) {
      if (part[-i] != 1) strides_[static_cast<std::size_t>(whole.rank() - i)] = stride;
      stride *= part[-i];
    }
    for (Index axis = whole.rank() - 1; begin > 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      index_[a] = begin % whole[axis];
      at_ += strides_[a] * index_[a];
      begin /= whole[axis];
    }
  }

  [[nodiscard]] Index at() const { return at_; }
  void next() {
    for (Index axis = whole_.rank() - 1; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      at_ += strides_[a];
      if (++index_[a] < whole_[axis]) return;
      at_ -= strides_[a] * whole_[axis];
      index_[a] = 0;
    }
  }

 private:
  Shape whole_;
  std::array<Index, Shape::kMaxRank> strides_{}, index_{};
  Index at_ = 0;
};

/// f(a, b), element by element, after broadcasting.
template <Real T, class F>
Tensor<T> broadcast(std::string_view op, const Tensor<T>& a, const Tensor<T>& b, F f) {
  require(!a.empty() && !b.empty(), "{}: there is no {} input", op, a.empty() ? "first" : "second");
  const Shape shape = broadcast_shape(op, a.shape(), b.shape());
  Tensor<T> y = Tensor<T>::uninitialized(shape);
  T* out = y.data();
  const T *x = a.data(), *z = b.data();
  if (a.shape() == b.shape()) {
    parallel_rows(y.size(), 1, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) out[i] = f(x[i], z[i]);
    });
    return y;
  }
  if (a.shape() == shape && ends_with(shape, b.shape())) {  // b again and again
    const Index n = std::max<Index>(1, b.size());
    parallel_rows(y.size() / n, n, [&](Index begin, Index end) {
      for (Index r = begin; r < end; ++r)
        for (Index i = 0; i < n; ++i) out[r * n + i] = f(x[r * n + i], z[i]);
    });
    return y;
  }
  parallel_rows(y.size(), 1, [&](Index begin, Index end) {
    BroadcastWalk in_a(a.shape(), shape, begin), in_b(b.shape(), shape, begin);
    for (Index i = begin; i < end; ++i, in_a.next(), in_b.next())
      out[i] = f(x[in_a.at()], z[in_b.at()]);
  });
  return y;
}

/// What broadcasting `shape` to dy's shape repeated, summed: the gradient of the smaller one.
template <Real T>
Tensor<T> sum_to(const Shape& shape, const Tensor<T>& dy) {
  if (shape == dy.shape()) return dy;
  Tensor<T> sum = Tensor<T>::zeros(shape);
  T* out = sum.data();
  const T* in = dy.data();
  if (ends_with(dy.shape(), shape) && sum.size() > 0) {
    for (Index r = 0; r < dy.size() / sum.size(); ++r)
      kernels::add(in + r * sum.size(), out, sum.size());
    return sum;
  }
  BroadcastWalk walk(shape, dy.shape());
  for (Index i = 0; i < dy.size(); ++i, walk.next()) out[walk.at()] += in[i];
  return sum;
}

}  // namespace headwise
