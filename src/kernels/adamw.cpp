#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/adamw.cpp"
#include "hwy/foreach_target.h"
// Highway's own order: foreach_target first.
#include "hwy/highway.h"
#include "kernels/dispatch.hpp"
#include "kernels/kernels.hpp"
#include "kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headwise::kernels::HWY_NAMESPACE {

template <class T>
bool adamw(const AdamwStep<T>& s, const T* g, T* m, T* v, T* p, Index n) {
  const hn::ScalableTag<T> d;
  const auto grad_scale = hn::Set(d, s.grad_scale), beta1 = hn::Set(d, s.beta1),
             beta2 = hn::Set(d, s.beta2), rest1 = hn::Set(d, T(1) - s.beta1),
             rest2 = hn::Set(d, T(1) - s.beta2), eps = hn::Set(d, s.eps), keep = hn::Set(d, s.keep),
             rate = hn::Set(d, s.rate), unbias2 = hn::Set(d, s.unbias2);
  const auto zero = hn::Zero(d);
  auto odd = zero;  // NaN once something is not finite: 0 times that is NaN, and Or keeps its bits
  const auto grad = [&](auto up) HWY_ATTR { return hn::Mul(up, grad_scale); };
  // In runs that stay in the nearest cache, so that memory is read and written once.
  constexpr Index kRun = 1024;
  for (Index i = 0; i < n; i += kRun) {
    const Index k = n - i < kRun ? n - i : kRun;
    map(
        d, k, m + i, T(0),
        [&](auto old, auto up)
            HWY_ATTR { return hn::MulAdd(beta1, old, hn::Mul(rest1, grad(up))); },
        m + i, g + i);
    map(
        d, k, v + i, T(0),
        [&](auto old, auto up) HWY_ATTR {
          const auto u = grad(up);
          return hn::MulAdd(beta2, old, hn::Mul(rest2, hn::Mul(u, u)));
        },
        v + i, g + i);
    map(
        d, k, p + i, T(0),
        [&](auto old, auto mean, auto square) HWY_ATTR {
          const auto size = hn::Add(hn::Sqrt(hn::Mul(square, unbias2)), eps);
          const auto next = hn::Sub(hn::Mul(keep, old), hn::Div(hn::Mul(rate, mean), size));
          odd = hn::Or(odd, hn::Or(hn::Mul(zero, next), hn::Mul(zero, square)));
          return next;
        },
        p + i, m + i, v + i);
  }
  return hn::AllFalse(d, hn::IsNaN(odd));
}

bool adamw_f32(const AdamwStep<float>& s, const float* g, float* m, float* v, float* p, Index n) {
  return HWY_NAMESPACE::adamw(s, g, m, v, p, n);
}
bool adamw_f64(const AdamwStep<double>& s, const double* g, double* m, double* v, double* p,
               Index n) {
  return HWY_NAMESPACE::adamw(s, g, m, v, p, n);
}

}  // namespace headwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headwise::kernels {
HEADWISE_EXPORT(adamw);

template <Real T>
bool adamw(const AdamwStep<T>& step, const T* g, T* m, T* v, T* p, Index n) {
  return HEADWISE_KERNEL(adamw, T)(step, g, m, v, p, n);
}
template bool adamw(const AdamwStep<float>&, const float*, float*, float*, float*, Index);
template bool adamw(const AdamwStep<double>&, const double*, double*, double*, double*, Index);
}  // namespace headwise::kernels
#endif
