#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce.cpp"
#include "hwy/foreach_target.h"
// Highway's own order: foreach_target first.
#include "hwy/highway.h"
#include "kernels/dispatch.hpp"
#include "kernels/kernels.hpp"
#include "kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headwise::kernels::HWY_NAMESPACE {

template <class T>
void add(const T* x, T* y, Index n) {
  const hn::ScalableTag<T> d;
  map(
      d, n, y, T(0), [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); }, y, x);
}

template <class T>
void multiply(const T* a, const T* b, T* y, Index n) {
  const hn::ScalableTag<T> d;
  map(
      d, n, y, T(0), [](auto u, auto v) HWY_ATTR { return hn::Mul(u, v); }, a, b);
}

/// sum f(x) in double, over vectors of as many doubles as fit.
template <class F>
double accumulate(const double* x, Index n, F f) {
  const hn::ScalableTag<double> d;
  auto total = hn::Zero(d);
  scan(
      d, n, 0.0, [&](auto v) HWY_ATTR { total = f(v, total); }, x);
  return sum_of(d, total);
}
template <class F>
double accumulate(const float* x, Index n, F f) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  auto total = hn::Zero(d);
  scan(
      half, n, 0.0f, [&](auto v) HWY_ATTR { total = f(hn::PromoteTo(d, v), total); }, x);
  return sum_of(d, total);
}

template <class T>
double sum(const T* x, Index n) {
  return accumulate(x, n, [](auto v, auto total) HWY_ATTR { return hn::Add(v, total); });
}
template <class T>
double sum_squares(const T* x, Index n) {
  return accumulate(x, n, [](auto v, auto total) HWY_ATTR { return hn::MulAdd(v, v, total); });
}

template <class T>
bool all_finite(Mat<const T> x) {
  const hn::ScalableTag<T> d;
  const auto zero = hn::Zero(d);
  auto odd = zero;  // NaN once something is not finite: 0 times that is NaN, and Or keeps its bits
  for (Index r = 0; r < x.rows; ++r)
    scan(
        d, x.cols, T(0), [&](auto v) HWY_ATTR { odd = hn::Or(odd, hn::Mul(zero, v)); },
        x.data + r * x.ld);
  return hn::AllFalse(d, hn::IsNaN(odd));
}

void add_f32(const float* x, float* y, Index n) { HWY_NAMESPACE::add(x, y, n); }
void add_f64(const double* x, double* y, Index n) { HWY_NAMESPACE::add(x, y, n); }
void multiply_f32(const float* a, const float* b, float* y, Index n) {
  HWY_NAMESPACE::multiply(a, b, y, n);
}
void multiply_f64(const double* a, const double* b, double* y, Index n) {
  HWY_NAMESPACE::multiply(a, b, y, n);
}
bool all_finite_f32(Mat<const float> x) { return HWY_NAMESPACE::all_finite(x); }
bool all_finite_f64(Mat<const double> x) { return HWY_NAMESPACE::all_finite(x); }
double sum_f32(const float* x, Index n) { return HWY_NAMESPACE::sum(x, n); }
double sum_f64(const double* x, Index n) { return HWY_NAMESPACE::sum(x, n); }
double sum_squares_f32(const float* x, Index n) { return HWY_NAMESPACE::sum_squares(x, n); }
double sum_squares_f64(const double* x, Index n) { return HWY_NAMESPACE::sum_squares(x, n); }

}  // namespace headwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headwise::kernels {
HEADWISE_EXPORT(add);
HEADWISE_EXPORT(multiply);
HEADWISE_EXPORT(all_finite);
HEADWISE_EXPORT(sum);
HEADWISE_EXPORT(sum_squares);

template <Real T>
void add(const T* x, T* y, Index n) {
  HEADWISE_KERNEL(add, T)(x, y, n);
}
template <Real T>
void multiply(const T* a, const T* b, T* y, Index n) {
  HEADWISE_KERNEL(multiply, T)(a, b, y, n);
}
template <Real T>
bool all_finite(Mat<const T> x) {
  return HEADWISE_KERNEL(all_finite, T)(x);
}
template <Real T>
double sum(const T* x, Index n) {
  return HEADWISE_KERNEL(sum, T)(x, n);
}
template <Real T>
double sum_squares(const T* x, Index n) {
  return HEADWISE_KERNEL(sum_squares, T)(x, n);
}

template void add(const float*, float*, Index);
template void add(const double*, double*, Index);
template void multiply(const float*, const float*, float*, Index);
template void multiply(const double*, const double*, double*, Index);
template bool all_finite(Mat<const float>);
template bool all_finite(Mat<const double>);
template double sum(const float*, Index);
template double sum(const double*, Index);
template double sum_squares(const float*, Index);
template double sum_squares(const double*, Index);
}  // namespace headwise::kernels
#endif
