// Loops over rows, for kernels compiled once per instruction set. The remainder of a row is copied
// to one padded vector and goes through the same code: below AVX2, Highway 1.0.3's MaskedLoad reads
// a full vector.
#if defined(HEADWISE_VECTORS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADWISE_VECTORS_INL_H
#undef HEADWISE_VECTORS_INL_H
#else
#define HEADWISE_VECTORS_INL_H
#endif

#include "headwise/core/shape.hpp"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headwise::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The n < lanes elements at x, the rest of the vector being `pad`.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_some(D d, const T* x, Index n, T pad) {
  HWY_ALIGN T some[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(hn::Set(d, pad), d, some);
  for (Index i = 0; i < n; ++i) some[i] = x[i];
  return hn::Load(d, some);
}

/// Calls f(x[i..], ...) for the vectors that cover n elements of each x; past the end they read
/// `pad`.
template <class D, class T = hn::TFromD<D>, class F, class... X>
HWY_INLINE void scan(D d, Index n, T pad, F f, const X*... x) {
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  Index i = 0;
  for (; i + lanes <= n; i += lanes) f(hn::LoadU(d, x + i)...);
  if (i < n) f(load_some(d, x + i, n - i, pad)...);
}

/// y[i] = f(x[i], ...) for n elements; y may be one of the x.
template <class D, class T = hn::TFromD<D>, class F, class... X>
HWY_INLINE void map(D d, Index n, T* y, T pad, F f, const X*... x) {
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  Index i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(hn::LoadU(d, x + i)...), d, y + i);
  if (i == n) return;
  HWY_ALIGN T some[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(f(load_some(d, x + i, n - i, pad)...), d, some);
  for (Index j = 0; i + j < n; ++j) y[i + j] = some[j];
}

/// y[i] = f(x[i], z) and, unless it is null, second[i] = z, which f sets.
template <class D, class T = hn::TFromD<D>, class F>
HWY_INLINE void map_two(D d, Index n, T* y, T* second, F f, const T* x) {
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  HWY_ALIGN T some[HWY_MAX_BYTES / sizeof(T)];
  auto z = hn::Zero(d);
  const auto put = [&](auto v, T* to, Index m) HWY_ATTR {
    if (m >= lanes) return hn::StoreU(v, d, to);
    hn::Store(v, d, some);
    for (Index j = 0; j < m; ++j) to[j] = some[j];
  };
  for (Index i = 0; i < n; i += lanes) {
    const Index m = n - i;
    put(f(m >= lanes ? hn::LoadU(d, x + i) : load_some(d, x + i, m, T(0)), z), y + i, m);
    if (second != nullptr) put(z, second + i, m);
  }
}

template <class D, class V>
HWY_INLINE hn::TFromD<D> sum_of(D d, V v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}

}  // namespace headwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
