// Taps that watch the pattern of attention(), and ones that change it.
#pragma once

#include <functional>
#include <utility>

#include "headwise/ops/ops.hpp"

namespace headwise::test {

/// Keeps the pattern it saw.
template <Real T>
struct KeepPattern : PatternTap<T> {
  Tensor<T> pattern;
  bool see(Tensor<T>& p) override {
    pattern = p;
    return false;
  }
};

/// Hands the pattern to a function and says that it was replaced.
template <Real T>
struct ReplacePattern : PatternTap<T> {
  std::function<void(Tensor<T>&)> change;
  explicit ReplacePattern(std::function<void(Tensor<T>&)> f) : change(std::move(f)) {}
  bool see(Tensor<T>& p) override {
    change(p);
    return true;
  }
};

}  // namespace headwise::test
