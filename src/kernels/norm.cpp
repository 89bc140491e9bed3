#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm.cpp"
#include "hwy/foreach_target.h"
// Highway's own order: foreach_target first.
#include <cmath>

#include "hwy/highway.h"
#include "kernels/dispatch.hpp"
#include "kernels/kernels.hpp"
#include "kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headwise::kernels::HWY_NAMESPACE {

template <class T>
NormStats<T> layer_norm(const T* x, const T* gain, const T* bias, T eps, T* y, Index n) {
  const hn::ScalableTag<T> d;
  const T count = static_cast<T>(n);
  auto total = hn::Zero(d);
  scan(
      d, n, T(0), [&](auto v) HWY_ATTR { total = hn::Add(total, v); }, x);
  NormStats<T> s;
  s.mean = sum_of(d, total) / count;

  // About that mean: what is left of the sum corrects it (Chan et al. 1983, "Algorithms for
  // computing the sample variance", eq. 1.7). Padding with the mean adds nothing.
  const auto mean = hn::Set(d, s.mean);
  auto rest = hn::Zero(d), squares = hn::Zero(d);
  scan(
      d, n, s.mean,
      [&](auto v) HWY_ATTR {
        const auto away = hn::Sub(v, mean);
        rest = hn::Add(rest, away);
        squares = hn::MulAdd(away, away, squares);
      },
      x);
  s.mean_rest = sum_of(d, rest) / count;
  const T variance = sum_of(d, squares) / count - s.mean_rest * s.mean_rest;
  s.rstd = T(1) / std::sqrt(variance + eps);

  const auto mean_rest = hn::Set(d, s.mean_rest), rstd = hn::Set(d, s.rstd);
  const auto normed = [&](auto v)
                          HWY_ATTR { return hn::Mul(hn::Sub(hn::Sub(v, mean), mean_rest), rstd); };
  if (gain != nullptr && bias != nullptr)
    map(
        d, n, y, T(0), [&](auto v, auto g, auto b) HWY_ATTR { return hn::MulAdd(normed(v), g, b); },
        x, gain, bias);
  else if (gain != nullptr)
    map(
        d, n, y, T(0), [&](auto v, auto g) HWY_ATTR { return hn::Mul(normed(v), g); }, x, gain);
  else if (bias != nullptr)
    map(
        d, n, y, T(0), [&](auto v, auto b) HWY_ATTR { return hn::Add(normed(v), b); }, x, bias);
  else
    map(
        d, n, y, T(0), [&](auto v) HWY_ATTR { return normed(v); }, x);
  return s;
}

template <class T>
void layer_norm_backward(const T* x, NormStats<T> s, const T* gain, const T* dy, T beta, T* dx,
                         T* dgain, Index n) {
  const hn::ScalableTag<T> d;
  const auto mean = hn::Set(d, s.mean), mean_rest = hn::Set(d, s.mean_rest),
             rstd = hn::Set(d, s.rstd);
  const auto normed = [&](auto v)
                          HWY_ATTR { return hn::Mul(hn::Sub(hn::Sub(v, mean), mean_rest), rstd); };
  auto sum_g = hn::Zero(d), sum_gx = hn::Zero(d);
  const auto count_in = [&](auto v, auto g) HWY_ATTR {
    sum_g = hn::Add(sum_g, g);
    sum_gx = hn::MulAdd(g, normed(v), sum_gx);
  };
  if (gain != nullptr)
    scan(
        d, n, T(0), [&](auto v, auto up, auto w) HWY_ATTR { count_in(v, hn::Mul(up, w)); }, x, dy,
        gain);
  else
    scan(d, n, T(0), count_in, x, dy);
  if (dgain != nullptr)
    map(
        d, n, dgain, T(0),
        [&](auto v, auto up, auto sum) HWY_ATTR { return hn::MulAdd(up, normed(v), sum); }, x, dy,
        dgain);
  const T count = static_cast<T>(n);
  const auto mean_g = hn::Set(d, sum_of(d, sum_g) / count),
             mean_gx = hn::Set(d, sum_of(d, sum_gx) / count);
  const auto gradient = [&](auto v, auto g) HWY_ATTR {
    return hn::Mul(rstd, hn::Sub(hn::Sub(g, mean_g), hn::Mul(normed(v), mean_gx)));
  };
  const bool adds = beta != 0;
  if (gain != nullptr && adds)
    map(
        d, n, dx, T(0),
        [&](auto v, auto up, auto w, auto old)
            HWY_ATTR { return hn::Add(old, gradient(v, hn::Mul(up, w))); },
        x, dy, gain, dx);
  else if (gain != nullptr)
    map(
        d, n, dx, T(0),
        [&](auto v, auto up, auto w) HWY_ATTR { return gradient(v, hn::Mul(up, w)); }, x, dy, gain);
  else if (adds)
    map(
        d, n, dx, T(0),
        [&](auto v, auto up, auto old) HWY_ATTR { return hn::Add(old, gradient(v, up)); }, x, dy,
        dx);
  else
    map(d, n, dx, T(0), gradient, x, dy);
}

template <class T>
T rms_norm(const T* x, const T* gain, T eps, T* y, Index n) {
  const hn::ScalableTag<T> d;
  auto squares = hn::Zero(d);
  scan(
      d, n, T(0), [&](auto v) HWY_ATTR { squares = hn::MulAdd(v, v, squares); }, x);
  const T rms = T(1) / std::sqrt(sum_of(d, squares) / static_cast<T>(n) + eps);
  const auto factor = hn::Set(d, rms);
  if (gain != nullptr)
    map(
        d, n, y, T(0), [&](auto v, auto g) HWY_ATTR { return hn::Mul(hn::Mul(v, factor), g); }, x,
        gain);
  else
    map(
        d, n, y, T(0), [&](auto v) HWY_ATTR { return hn::Mul(v, factor); }, x);
  return rms;
}

template <class T>
void rms_norm_backward(const T* x, T rms, const T* gain, const T* dy, T* dx, T* dgain, Index n) {
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, rms);
  if (dgain != nullptr)
    map(
        d, n, dgain, T(0),
        [&](auto v, auto up, auto sum) HWY_ATTR { return hn::MulAdd(up, hn::Mul(v, factor), sum); },
        x, dy, dgain);
  if (gain != nullptr)
    map(
        d, n, dx, T(0), [&](auto up, auto g) HWY_ATTR { return hn::Mul(up, g); }, dy, gain);
  else
    map(
        d, n, dx, T(0), [&](auto up) HWY_ATTR { return up; }, dy);
  auto total = hn::Zero(d);
  scan(
      d, n, T(0),
      [&](auto v, auto g) HWY_ATTR { total = hn::MulAdd(g, hn::Mul(v, factor), total); }, x, dx);
  const auto mean = hn::Set(d, sum_of(d, total) / static_cast<T>(n));
  map(
      d, n, dx, T(0),
      [&](auto v, auto g)
          HWY_ATTR { return hn::Mul(factor, hn::Sub(g, hn::Mul(hn::Mul(v, factor), mean))); },
      x, dx);
}

NormStats<float> layer_norm_f32(const float* x, const float* gain, const float* bias, float eps,
                                float* y, Index n) {
  return HWY_NAMESPACE::layer_norm(x, gain, bias, eps, y, n);
}
NormStats<double> layer_norm_f64(const double* x, const double* gain, const double* bias,
                                 double eps, double* y, Index n) {
  return HWY_NAMESPACE::layer_norm(x, gain, bias, eps, y, n);
}
void layer_norm_backward_f32(const float* x, NormStats<float> s, const float* gain, const float* dy,
                             float beta, float* dx, float* dgain, Index n) {
  HWY_NAMESPACE::layer_norm_backward(x, s, gain, dy, beta, dx, dgain, n);
}
void layer_norm_backward_f64(const double* x, NormStats<double> s, const double* gain,
                             const double* dy, double beta, double* dx, double* dgain, Index n) {
  HWY_NAMESPACE::layer_norm_backward(x, s, gain, dy, beta, dx, dgain, n);
}

float rms_norm_f32(const float* x, const float* gain, float eps, float* y, Index n) {
  return HWY_NAMESPACE::rms_norm(x, gain, eps, y, n);
}
double rms_norm_f64(const double* x, const double* gain, double eps, double* y, Index n) {
  return HWY_NAMESPACE::rms_norm(x, gain, eps, y, n);
}
void rms_norm_backward_f32(const float* x, float rms, const float* gain, const float* dy, float* dx,
                           float* dgain, Index n) {
  HWY_NAMESPACE::rms_norm_backward(x, rms, gain, dy, dx, dgain, n);
}
void rms_norm_backward_f64(const double* x, double rms, const double* gain, const double* dy,
                           double* dx, double* dgain, Index n) {
  HWY_NAMESPACE::rms_norm_backward(x, rms, gain, dy, dx, dgain, n);
}

}  // namespace headwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headwise::kernels {
HEADWISE_EXPORT(layer_norm);
HEADWISE_EXPORT(layer_norm_backward);
HEADWISE_EXPORT(rms_norm);
HEADWISE_EXPORT(rms_norm_backward);

template <Real T>
NormStats<T> layer_norm(const T* x, const T* gain, const T* bias, T eps, T* y, Index n) {
  return HEADWISE_KERNEL(layer_norm, T)(x, gain, bias, eps, y, n);
}
template <Real T>
void layer_norm_backward(const T* x, NormStats<T> stats, const T* gain, const T* dy, T beta, T* dx,
                         T* dgain, Index n) {
  HEADWISE_KERNEL(layer_norm_backward, T)(x, stats, gain, dy, beta, dx, dgain, n);
}
template <Real T>
T rms_norm(const T* x, const T* gain, T eps, T* y, Index n) {
  return HEADWISE_KERNEL(rms_norm, T)(x, gain, eps, y, n);
}
template <Real T>
void rms_norm_backward(const T* x, T rms, const T* gain, const T* dy, T* dx, T* dgain, Index n) {
  HEADWISE_KERNEL(rms_norm_backward, T)(x, rms, gain, dy, dx, dgain, n);
}

template NormStats<float> layer_norm(const float*, const float*, const float*, float, float*,
                                     Index);
template NormStats<double> layer_norm(const double*, const double*, const double*, double, double*,
                                      Index);
template void layer_norm_backward(const float*, NormStats<float>, const float*, const float*, float,
                                  float*, float*, Index);
template void layer_norm_backward(const double*, NormStats<double>, const double*, const double*,
                                  double, double*, double*, Index);
template float rms_norm(const float*, const float*, float, float*, Index);
template double rms_norm(const double*, const double*, double, double*, Index);
template void rms_norm_backward(const float*, float, const float*, const float*, float*, float*,
                                Index);
template void rms_norm_backward(const double*, double, const double*, const double*, double*,
                                double*, Index);
}  // namespace headwise::kernels
#endif
