#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gelu.cpp"
#include "hwy/foreach_target.h"
// Highway's own order: foreach_target first.
#include <cmath>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/dispatch.hpp"
#include "kernels/kernels.hpp"
#include "kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headwise::kernels::HWY_NAMESPACE {

/// y = x Phi(x), slope = Phi(x) + x phi(x). In float
///   Phi(-|x|) = exp(-x^2/2)/2 * t (c0 + c1 t + ...),   t = 1 / (1 + |x|/sqrt(8)),
/// one exponential for both; coefficients and their error (5e-8) by tests/golden/fit_erfc.py.
void gelu_exact_f32(const float* x, float* y, float* slope, Index n) {
  [[maybe_unused]] static constexpr float c[] = {
      2.820837421e-01f, 2.824287684e-01f,  2.426677308e-01f, 2.045918463e-01f, -3.152925774e-02f,
      2.857277131e-01f, -4.943332111e-01f, 2.882136416e-01f, -5.985102222e-02f};
  const hn::ScalableTag<float> d;
  const auto one = hn::Set(d, 1.0f), half = hn::Set(d, 0.5f);
  map_two(
      d, n, y, slope,
      [&](auto v, auto& derivative) HWY_ATTR {
        const auto a = hn::Abs(v);
        const auto bell = hn::Exp(d, hn::Mul(hn::Mul(v, v), hn::Set(d, -0.5f)));
        const auto t = hn::Div(one, hn::MulAdd(a, hn::Set(d, 0.35355339059327f), one));
        auto poly = hn::Set(d, c[8]);
        for (int i = 7; i >= 0; --i) poly = hn::MulAdd(poly, t, hn::Set(d, c[i]));
        const auto below = hn::Mul(hn::Mul(half, bell), hn::Mul(poly, t));  // Phi(-|x|)
        const auto cdf = hn::IfThenElse(hn::Lt(v, hn::Zero(d)), below, hn::Sub(one, below));
        derivative = hn::MulAdd(hn::Mul(v, bell), hn::Set(d, 0.39894228040143f), cdf);
        return hn::Mul(v, cdf);
      },
      x);
}

/// Double proves: the C library's erfc, exact to the last digits.
void gelu_exact_f64(const double* x, double* y, double* slope, Index n) {
  for (Index i = 0; i < n; ++i) {
    const double v = x[i], cdf = 0.5 * std::erfc(-v * 0.70710678118654752440);
    y[i] = v * cdf;
    if (slope != nullptr) slope[i] = cdf + v * 0.39894228040143267794 * std::exp(-0.5 * v * v);
  }
}

/// y = x (1 + t)/2, t = tanh(u), u = sqrt(2/pi) (x + 0.044715 x^3);
/// slope = (1 + t)/2 + x (1 - t^2)/2 u'.
template <class T>
void gelu_tanh(const T* x, T* y, T* slope, Index n) {
  const hn::ScalableTag<T> d;
  const auto one = hn::Set(d, T(1)), half = hn::Set(d, T(0.5)),
             scale = hn::Set(d, T(0.79788456080286535588)), cubic = hn::Set(d, T(0.044715)),
             most = hn::Set(d, T(20));
  map_two(
      d, n, y, slope,
      [&](auto v, auto& derivative) HWY_ATTR {
        const auto near = hn::Max(hn::Min(v, most), hn::Neg(most));  // beyond, t is 1 or -1
        const auto v2 = hn::Mul(near, near);
        const auto t = hn::Tanh(d, hn::Mul(hn::Mul(scale, near), hn::MulAdd(cubic, v2, one)));
        const auto du = hn::Mul(scale, hn::MulAdd(hn::Mul(hn::Set(d, T(3)), cubic), v2, one));
        const auto curve = hn::Mul(hn::NegMulAdd(t, t, one), du);
        derivative = hn::Mul(half, hn::Add(hn::Add(one, t), hn::Mul(v, curve)));
        return hn::Mul(hn::Mul(half, v), hn::Add(one, t));
      },
      x);
}

void gelu_tanh_f32(const float* x, float* y, float* slope, Index n) {
  HWY_NAMESPACE::gelu_tanh(x, y, slope, n);
}
void gelu_tanh_f64(const double* x, double* y, double* slope, Index n) {
  HWY_NAMESPACE::gelu_tanh(x, y, slope, n);
}

}  // namespace headwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headwise::kernels {
HEADWISE_EXPORT(gelu_exact);
HEADWISE_EXPORT(gelu_tanh);

template <Real T>
void gelu_exact(const T* x, T* y, T* slope, Index n) {
  HEADWISE_KERNEL(gelu_exact, T)(x, y, slope, n);
}
template <Real T>
void gelu_tanh(const T* x, T* y, T* slope, Index n) {
  HEADWISE_KERNEL(gelu_tanh, T)(x, y, slope, n);
}

template void gelu_exact(const float*, float*, float*, Index);
template void gelu_exact(const double*, double*, double*, Index);
template void gelu_tanh(const float*, float*, float*, Index);
template void gelu_tanh(const double*, double*, double*, Index);
}  // namespace headwise::kernels
#endif
