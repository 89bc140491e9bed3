// A trainable tensor.
#pragma once

#include <cstdint>
#include <utility>

#include "headwise/core/tensor.hpp"

namespace headwise {

/// Which parameter it is, for what is kept beside it (an optimizer's state). Moves with the
/// parameter; a copy is another parameter, and one that is assigned a copy stays itself.
class ParamId {
 public:
  ParamId() = default;
  ParamId(const ParamId&) {}
  ParamId(ParamId&& other) noexcept : value_(std::exchange(other.value_, unused())) {}
  // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): nothing is assigned
  ParamId& operator=(const ParamId&) { return *this; }
  ParamId& operator=(ParamId&& other) noexcept {
    if (this != &other) value_ = std::exchange(other.value_, unused());
    return *this;
  }
  ~ParamId() = default;

  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  static std::uint64_t unused();
  std::uint64_t value_ = unused();
};

/// A tensor that training changes, and the gradient that the last backward passes added up.
template <Real T>
struct Param {
  Tensor<T> value;
  mutable Tensor<T>
      grad;  ///< empty: no backward has reached it. A forward pass is const all the same
  bool trainable = true;  ///< false: used as a constant, never stepped
  ParamId id{};
};

}  // namespace headwise
