// Loops over rows, for kernels compiled once per instruction set. The remainder of a row goes
// through the same code as one padded vector: by masked loads and stores, or by a copy where those
// would touch a full vector (below AVX2 in Highway 1.0.3).
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

// Whether masked loads and stores touch only the lanes they name.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define HEADWISE_MASKED_MEMORY 1
#else
#define HEADWISE_MASKED_MEMORY 0
#endif

/// The n < lanes elements at x, the rest of the vector being `pad`.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_some(D d, const T* x, Index n, T pad) {
#if HEADWISE_MASKED_MEMORY
  const auto first = hn::FirstN(d, static_cast<std::size_t>(n));
  return hn::IfThenElse(first, hn::MaskedLoad(first, d, x), hn::Set(d, pad));
#else
  HWY_ALIGN T some[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(hn::Set(d, pad), d, some);
  for (Index i = 0; i < n; ++i) some[i] = x[i];
  return hn::Load(d, some);
#endif
}

/// y[i] = v[i] for the first n < lanes.
template <class D, class V, class T = hn::TFromD<D>>
HWY_INLINE void store_some(D d, V v, T* y, Index n) {
#if HEADWISE_MASKED_MEMORY
  hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(n)), d, y);
#else
  HWY_ALIGN T some[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, d, some);
  for (Index i = 0; i < n; ++i) y[i] = some[i];
#endif
}
#undef HEADWISE_MASKED_MEMORY

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
  if (i < n) store_some(d, f(load_some(d, x + i, n - i, pad)...), y + i, n - i);
}

/// y[i] = f(x[i], z) and, unless it is null, second[i] = z, which f sets.
template <class D, class T = hn::TFromD<D>, class F>
HWY_INLINE void map_two(D d, Index n, T* y, T* second, F f, const T* x) {
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  auto z = hn::Zero(d);
  const auto put = [&](auto v, T* to, Index m) HWY_ATTR {
    if (m >= lanes) return hn::StoreU(v, d, to);
    store_some(d, v, to, m);
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
