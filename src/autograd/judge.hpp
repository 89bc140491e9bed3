// What the two gradients of a tensor say, given how exact the numeric one can be.
#pragma once

#include <span>

#include "autograd/slope.hpp"
#include "headwise/core/function_ref.hpp"

namespace headwise {

/// What the two values of an element say.
enum class Ruling {
  right,
  wrong,
  kink,      ///< the slopes on its two sides differ: there is none to compare with
  rounding,  ///< they differ, by no more than what rounding may do
  bent,      ///< they differ, by no more than what the step may do: it is too large
  no_slope   ///< the function is not finite one step away, or does not take that
};

/// Whether a smaller step may tell more.
inline bool asks_for_smaller_steps(Ruling ruling) {
  return ruling == Ruling::kink || ruling == Ruling::bent || ruling == Ruling::no_slope;
}

/// Judges the elements of one tensor, by the same rules for a whole forward pass and for a record
/// alone. Bounds are parts of the largest gradient there is.
class Judge {
 public:
  /// A gradient passes that is off by `tolerance` of the largest one, or by `atol`. `floor` is the
  /// gradient that rounding of the result may hide, `inside` the slope that rounding on the way to
  /// it may make where the result is a difference of larger values, 0 where it is none.
  Judge(double tolerance, double atol, double floor, double inside)
      : tolerance_(tolerance), atol_(atol), floor_(floor), inside_(inside) {}

  /// Hears all elements before the first ruling: how large the gradients are, and what is usual
  /// doubt. `known` is the largest analytic gradient beside these.
  void hear(std::span<const double> analytic, std::span<const Slope> slopes, double known = 0);

  [[nodiscard]] double gradient() const { return gradient_; }  ///< the largest
  [[nodiscard]] double size() const;                           ///< what errors are a part of
  /// `agrees(within)` tells whether slopes over other steps are the same: where rounding inside the
  /// function makes one, they are not.
  [[nodiscard]] Ruling rule(double analytic, const Slope& s,
                            FunctionRef<bool(double within)> agrees) const;

 private:
  double tolerance_, atol_, floor_, inside_;
  double gradient_ = 0, noise_ = 0;
};

}  // namespace headwise
