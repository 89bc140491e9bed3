// From a kernel's per-instruction-set wrappers name_f32 and name_f64 to one template. A wrapper
// calls HWY_NAMESPACE::f: an unqualified call would find the dispatching f by its arguments, and
// recurse.
#pragma once

#include <type_traits>

#include "hwy/highway.h"

#define HEADWISE_EXPORT(name) \
  HWY_EXPORT(name##_f32);     \
  HWY_EXPORT(name##_f64)

/// The kernel for precision T, compiled for the best instruction set in use.
#define HEADWISE_KERNEL(name, T) \
  (::headwise::kernels::pick<T>(HWY_DYNAMIC_DISPATCH(name##_f32), HWY_DYNAMIC_DISPATCH(name##_f64)))

namespace headwise::kernels {

template <class T, class F32, class F64>
auto pick(F32* f32, F64* f64) {
  if constexpr (std::is_same_v<T, float>)
    return f32;
  else
    return f64;
}

}  // namespace headwise::kernels
