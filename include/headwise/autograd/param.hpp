// A trainable tensor.
#pragma once

#include "headwise/core/tensor.hpp"

namespace headwise {

/// A tensor that training changes, and the gradient that the last backward passes added up.
template <Real T>
struct Param {
  Tensor<T> value;
  mutable Tensor<T>
      grad;  ///< empty: no backward has reached it. A forward pass is const all the same
  bool trainable = true;  ///< false: used as a constant, never stepped
};

}  // namespace headwise
