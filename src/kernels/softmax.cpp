#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax.cpp"
#include "hwy/foreach_target.h"
// Highway's own order: foreach_target first.
#include <cmath>
#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/dispatch.hpp"
#include "kernels/kernels.hpp"
#include "kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headwise::kernels::HWY_NAMESPACE {

/// The row's maximum; NaN when there is a NaN or +inf in it, which Max and Exp would swallow.
template <class T>
T max_of(const T* x, Index n) {
  const hn::ScalableTag<T> d;
  const auto inf = hn::Inf(d);
  auto most = hn::Neg(inf);
  auto odd = hn::Lt(inf, inf);
  scan(
      d, n, -std::numeric_limits<T>::infinity(),
      [&](auto v) HWY_ATTR {
        odd = hn::Or(odd, hn::Not(hn::Lt(v, inf)));
        most = hn::Max(most, v);
      },
      x);
  if (!hn::AllFalse(d, odd)) return std::numeric_limits<T>::quiet_NaN();
  return hn::GetLane(hn::MaxOfLanes(d, most));
}

/// y = exp(x - max) and its sum.
template <class T>
T exponentials(const T* x, T max, T* y, Index n) {
  const hn::ScalableTag<T> d;
  const auto top = hn::Set(d, max);
  auto total = hn::Zero(d);
  map(
      d, n, y, -std::numeric_limits<T>::infinity(),
      [&](auto v) HWY_ATTR {
        const auto e = hn::Exp(d, hn::Sub(v, top));
        total = hn::Add(total, e);
        return e;
      },
      x);
  return sum_of(d, total);
}

template <class T>
void fill(T* x, T value, Index n) {
  for (Index i = 0; i < n; ++i) x[i] = value;
}

template <class T>
RowStats<T> softmax(T* x, Index n) {
  const hn::ScalableTag<T> d;
  const T max = max_of(x, n);
  if (std::isinf(max)) return fill(x, T(0), n), RowStats<T>{max, T(0)};
  if (std::isnan(max)) return fill(x, max, n), RowStats<T>{max, max};
  const T inverse = T(1) / exponentials(x, max, x, n);
  const auto factor = hn::Set(d, inverse);
  map(
      d, n, x, T(0), [&](auto v) HWY_ATTR { return hn::Mul(v, factor); }, x);
  return {max, inverse};
}

template <class T>
void softmax_again(T* x, Index n, RowStats<T> stats) {
  const hn::ScalableTag<T> d;
  if (std::isinf(stats.max)) return fill(x, T(0), n);
  if (std::isnan(stats.max)) return fill(x, stats.max, n);
  const auto top = hn::Set(d, stats.max), factor = hn::Set(d, stats.inverse);
  map(
      d, n, x, T(0), [&](auto v) HWY_ATTR { return hn::Mul(hn::Exp(d, hn::Sub(v, top)), factor); },
      x);
}

template <class T>
void softmax_backward(const T* p, T* dp, Index n) {
  const hn::ScalableTag<T> d;
  auto total = hn::Zero(d);
  scan(
      d, n, T(0), [&](auto a, auto b) HWY_ATTR { total = hn::MulAdd(a, b, total); }, p, dp);
  const auto dot = hn::Set(d, sum_of(d, total));
  map(
      d, n, dp, T(0), [&](auto a, auto b) HWY_ATTR { return hn::Mul(a, hn::Sub(b, dot)); }, p, dp);
}

template <class T>
double log_sum_exp(const T* x, Index n) {
  const hn::ScalableTag<T> d;
  const T max = max_of(x, n);
  if (std::isinf(max) || std::isnan(max)) return static_cast<double>(max);
  const auto top = hn::Set(d, max);
  auto total = hn::Zero(d);
  scan(
      d, n, -std::numeric_limits<T>::infinity(),
      [&](auto v) HWY_ATTR { total = hn::Add(total, hn::Exp(d, hn::Sub(v, top))); }, x);
  return static_cast<double>(max) + std::log(static_cast<double>(sum_of(d, total)));
}

/// The subtraction is done in two parts, so that a float row loses nothing to lse being rounded.
template <class T>
void exp_minus(const T* x, double lse, T scale, T* dx, Index n) {
  const hn::ScalableTag<T> d;
  const T high = static_cast<T>(lse), low = static_cast<T>(lse - static_cast<double>(high));
  const auto first = hn::Set(d, high), second = hn::Set(d, low), factor = hn::Set(d, scale);
  map(
      d, n, dx, T(0),
      [&](auto v) HWY_ATTR {
        const auto away = hn::Sub(hn::Sub(v, first), second);
        const auto e = hn::Mul(factor, hn::Exp(d, away));
        return hn::IfThenElse(hn::IsNaN(away), away, e);  // which Exp would swallow
      },
      x);
}

RowStats<float> softmax_f32(float* x, Index n) { return HWY_NAMESPACE::softmax(x, n); }
RowStats<double> softmax_f64(double* x, Index n) { return HWY_NAMESPACE::softmax(x, n); }
void softmax_again_f32(float* x, Index n, RowStats<float> s) {
  HWY_NAMESPACE::softmax_again(x, n, s);
}
void softmax_again_f64(double* x, Index n, RowStats<double> s) {
  HWY_NAMESPACE::softmax_again(x, n, s);
}
void softmax_backward_f32(const float* p, float* dp, Index n) {
  HWY_NAMESPACE::softmax_backward(p, dp, n);
}
void softmax_backward_f64(const double* p, double* dp, Index n) {
  HWY_NAMESPACE::softmax_backward(p, dp, n);
}
double log_sum_exp_f32(const float* x, Index n) { return HWY_NAMESPACE::log_sum_exp(x, n); }
double log_sum_exp_f64(const double* x, Index n) { return HWY_NAMESPACE::log_sum_exp(x, n); }
void exp_minus_f32(const float* x, double lse, float scale, float* dx, Index n) {
  HWY_NAMESPACE::exp_minus(x, lse, scale, dx, n);
}
void exp_minus_f64(const double* x, double lse, double scale, double* dx, Index n) {
  HWY_NAMESPACE::exp_minus(x, lse, scale, dx, n);
}

}  // namespace headwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headwise::kernels {
HEADWISE_EXPORT(softmax);
HEADWISE_EXPORT(softmax_again);
HEADWISE_EXPORT(softmax_backward);
HEADWISE_EXPORT(log_sum_exp);
HEADWISE_EXPORT(exp_minus);

template <Real T>
RowStats<T> softmax(T* x, Index n) {
  return HEADWISE_KERNEL(softmax, T)(x, n);
}
template <Real T>
void softmax_again(T* x, Index n, RowStats<T> stats) {
  HEADWISE_KERNEL(softmax_again, T)(x, n, stats);
}
template <Real T>
void softmax_backward(const T* p, T* dp, Index n) {
  HEADWISE_KERNEL(softmax_backward, T)(p, dp, n);
}
template <Real T>
double log_sum_exp(const T* x, Index n) {
  return HEADWISE_KERNEL(log_sum_exp, T)(x, n);
}
template <Real T>
void exp_minus(const T* x, double lse, T scale, T* dx, Index n) {
  HEADWISE_KERNEL(exp_minus, T)(x, lse, scale, dx, n);
}

template RowStats<float> softmax(float*, Index);
template RowStats<double> softmax(double*, Index);
template void softmax_again(float*, Index, RowStats<float>);
template void softmax_again(double*, Index, RowStats<double>);
template void softmax_backward(const float*, float*, Index);
template void softmax_backward(const double*, double*, Index);
template double log_sum_exp(const float*, Index);
template double log_sum_exp(const double*, Index);
template void exp_minus(const float*, double, float, float*, Index);
template void exp_minus(const double*, double, double, double*, Index);
}  // namespace headwise::kernels
#endif
