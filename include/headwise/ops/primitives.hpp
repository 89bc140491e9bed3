// The small differentiable functions that others can be composed of.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "headwise/autograd/tape.hpp"

namespace headwise {

/// a / b, element by element, broadcast as add() does. Division by zero gives what IEEE 754 says.
template <Real T>
Var<T> div(const Var<T>& a, const Var<T>& b);
template <Real T>
Var<T> neg(const Var<T>& x);

template <Real T>
Var<T> operator/(const Var<T>& a, const Var<T>& b) {
  return div(a, b);
}
template <Real T>
Var<T> operator-(const Var<T>& x) {
  return neg(x);
}

/// Element by element, values and derivatives alike. Where there is none, as for log, sqrt and pow
/// of a negative number, they give what IEEE 754 says: NaN or an infinity, as NumPy does.
template <Real T>
Var<T> exp(const Var<T>& x);
template <Real T>
Var<T> log(const Var<T>& x);
template <Real T>
Var<T> sqrt(const Var<T>& x);
template <Real T>
Var<T> tanh(const Var<T>& x);
/// 1 / (1 + exp(-x)), without overflow.
template <Real T>
Var<T> sigmoid(const Var<T>& x);
/// max(x, 0); its derivative at 0 is 0.
template <Real T>
Var<T> relu(const Var<T>& x);
template <Real T>
Var<T> square(const Var<T>& x);
/// |x|; its derivative at 0 is 0.
template <Real T>
Var<T> abs(const Var<T>& x);
/// x to the power of a constant, which is rounded to T; its derivative for exponent 0 is 0.
template <Real T>
Var<T> pow(const Var<T>& x, double exponent);

/// The largest element over the axes named, or over all when none is; axes and `keep` as for sum().
/// NaN when there is a NaN. The gradient goes to the first of equal maxima, in row-major order.
/// Throws ShapeError as sum() does, and for the maximum of no elements.
template <Real T>
Var<T> max(const Var<T>& x, const std::vector<Index>& axes = {}, bool keep = false);

/// exp(x) / sum exp(x) over the last axis, and its logarithm, without overflow.   x (..., C). A row
/// of nothing but -inf gives zeros, its logarithm -inf, and zero gradients; one with a NaN or +inf
/// gives NaN. Throws ShapeError for a scalar.
template <Real T>
Var<T> softmax(const Var<T>& x);
template <Real T>
Var<T> log_softmax(const Var<T>& x);

/// x / sqrt(mean(x^2) + eps) * gain over the last axis (Zhang and Sennrich 2019, arXiv:1910.07467,
/// sec. 4).   x (..., C), gain (C) or absent. Squares are in T: a row too large for that in float
/// (1e19 and more) gives zeros. Throws ShapeError when C disagrees, UsageError unless eps is a
/// finite number >= 0.
template <Real T>
Var<T> rms_norm(const Var<T>& x, const Var<T>& gain, double eps = 1e-5);

/// Which of two tensors where() takes, row-major; a constant.
struct Condition {
  Shape shape;
  std::vector<std::uint8_t> holds;  ///< 0: no

  /// Throws ShapeError when the number of values is not what the shape needs.
  Condition(const Shape& shape_, std::vector<std::uint8_t> holds_)
      : shape(shape_), holds(std::move(holds_)) {
    check("condition");
  }
  /// Throws ShapeError, in the name of an op, when they no longer fit: the members are public.
  void check(std::string_view op) const {
    require(static_cast<Index>(holds.size()) == shape.size(), "{}: got {} values for shape {}", op,
            holds.size(), shape);
  }
};

/// a where the condition holds, else b, element by element; all three broadcast as add()'s do. What
/// is not taken is not read: a NaN there reaches neither the result nor a gradient.
/// Throws ShapeError when the shapes do not broadcast.
template <Real T>
Var<T> where(const Condition& condition, const Var<T>& a, const Var<T>& b);

/// x with its axes in another order: axis i of the result is axis axes[i] of x; negative ones count
/// from the end. Throws ShapeError unless each axis is named once.
template <Real T>
Var<T> permute(const Var<T>& x, const std::vector<Index>& axes);
/// x with two axes exchanged.
template <Real T>
Var<T> transpose(const Var<T>& x, Index axis_a = -2, Index axis_b = -1);

/// The same elements under another shape, in which one size may be -1: what is left. Throws
/// ShapeError when the elements do not fill it.
template <Real T>
Var<T> reshape(const Var<T>& x, const std::vector<Index>& sizes);

/// The elements begin .. end - 1 along an axis. Throws ShapeError unless 0 <= begin <= end <= the
/// axis's size.
template <Real T>
Var<T> slice(const Var<T>& x, Index axis, Index begin, Index end);
/// Tensors one after the other along an axis, in which alone they may differ.
template <Real T>
Var<T> concat(const std::vector<Var<T>>& xs, Index axis);
/// Tensors of one shape one after the other along a new axis of the result.
template <Real T>
Var<T> stack(const std::vector<Var<T>>& xs, Index axis);

/// x (B,T,C) as heads (B,H,T,D), C = HD, and back (Vaswani et al. 2017, arXiv:1706.03762,
/// sec. 3.2.2). Throws ShapeError when C is no multiple of H.
template <Real T>
Var<T> split_heads(const Var<T>& x, Index heads);
template <Real T>
Var<T> concat_heads(const Var<T>& x);

}  // namespace headwise
