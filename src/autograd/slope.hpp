// Numeric derivatives along one line.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "headwise/core/tensor.hpp"

namespace headwise {

/// A precision's rounding, the step of a check in it, and how many times larger ones may be where
/// that does not pass: in float the extrapolation is good far beyond where rounding is.
template <Real T>
struct Precision;
template <>
struct Precision<double> {
  static constexpr double kUnit = 2.2e-16, kStep = 1e-3, kLarger = 1;
};
template <>
struct Precision<float> {
  static constexpr double kUnit = 1.2e-7, kStep = 5e-3, kLarger = 40;
};

/// The most that rounding does to an extrapolated slope, in u sum |w y| / h: by the weights of its
/// three differences, (1 + 20 * 2 + 64 * 4) / 45.
inline constexpr double kSlopeNoise = 6.6;

/// How often a step that leads out of what a function takes is divided by ten.
inline constexpr int kSmallerSteps = 6;

/// d sum(w y) / ds at s = 0.
struct Slope {
  double value = 0;            ///< central differences, extrapolated
  double left = 0, right = 0;  ///< one-sided ones, extrapolated
  double doubt = 0;            ///< by how much the two extrapolations before the last one differ
  bool overflow = false;       ///< an infinity in a result, and no NaN
  bool reshaped = false;       ///< a result of another shape: nothing else is known
  std::string thrown{};        ///< what the forward pass threw: nothing else is known

  /// Whether there is a slope at all: the function is finite, and takes what it gets, a step away.
  [[nodiscard]] bool known() const {
    return thrown.empty() && std::isfinite(value) && std::isfinite(left) && std::isfinite(right);
  }
};

/// A line through the point of a check: where along it the result is what.
template <Real T>
struct Line {
  virtual ~Line() = default;
  virtual Tensor<T> y(double s) = 0;
  virtual double distance(double s) = 0;  ///< how far s really is, after rounding
};

/// One element of x moves. `evaluate` takes x; x is put back at the end.
template <Real T, class Evaluate>
class ElementLine : public Line<T> {
 public:
  ElementLine(Tensor<T>& x, Index element, Evaluate evaluate)
      : x_(x), element_(element), at_(std::as_const(x).data()[element]), evaluate_(evaluate) {}
  ElementLine(const ElementLine&) = delete;
  ElementLine& operator=(const ElementLine&) = delete;
  ~ElementLine() override { x_.data()[element_] = at_; }
  Tensor<T> y(double s) override {
    x_.data()[element_] = moved(s);
    return evaluate_(x_);
  }
  double distance(double s) override {
    return static_cast<double>(moved(s)) - static_cast<double>(at_);
  }

 private:
  T moved(double s) const { return static_cast<T>(static_cast<double>(at_) + s); }

  Tensor<T>& x_;
  Index element_;
  T at_;
  Evaluate evaluate_;
};

/// Any other line.
template <Real T, class At>
class PlainLine : public Line<T> {
 public:
  explicit PlainLine(At at) : at_(std::move(at)) {}
  Tensor<T> y(double s) override { return at_(s); }
  double distance(double s) override { return s; }

 private:
  At at_;
};
template <Real T, class At>
PlainLine<T, At> plain_line(At at) {
  return PlainLine<T, At>(std::move(at));
}

/// x in a precision.
template <Real T>
Tensor<T> rounded(const Tensor<double>& x);

/// x + s v.
template <Real T>
Tensor<T> along(const Tensor<T>& x, double s, const Tensor<double>& v);

/// The largest absolute value, NaN when there is one.
template <Real T>
double largest(const Tensor<T>& x);

/// The largest step for a tensor: eps of its largest value, eps where that is above 1 or 0.
template <Real T>
double step_for(const Tensor<T>& x, double eps);

/// The gradient of sum(w y) that rounding of y may hide from differences over h: u sum |w y| / h is
/// how far off these are, and that part of the gradient passes.
template <Real T>
double floor_of(const Tensor<T>& y, const Tensor<double>& w, double h, double tolerance);

/// From results at +-h, +-h/2, +-h/4, each subtracted from the other before it is projected on w
/// (Richardson 1911, Phil. Trans. A 210). `y` is the result at 0. If `each` is not empty, the
/// slopes of the single results are written there.
template <Real T>
Slope slope(const Tensor<T>& y, std::span<const double> w, double h, Line<T>& line,
            std::span<double> each = {});

/// Without extrapolation, of one step.
struct Difference {
  double central, left, right;
};
template <Real T>
Difference difference(const Tensor<T>& y, std::span<const double> w, double h, Line<T>& line);

}  // namespace headwise
