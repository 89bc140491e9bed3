// Rows for kernels: somewhere in aligned memory, between numbers nobody may read or write.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <type_traits>
#include <vector>

#include "headwise/core/random.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace headwise::test {

/// n elements that start `offset` elements after a multiple of 64 bytes. Before and after them lies
/// a NaN of its own kind: a kernel that takes it in shows NaN, one that writes there is found by
/// intact(), and under the address sanitizer reading it is an error at once.
template <Real T>
class Guarded {
 public:
  Guarded(Index n, Index offset)
      : n_(static_cast<std::size_t>(n)), memory_(n_ + 2 * kMargin + kLine, guard()) {
    const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(memory_.data()) % 64;
    const std::size_t to_line = misaligned == 0 ? 0 : (64 - misaligned) / sizeof(T);
    begin_ = kLine + to_line + static_cast<std::size_t>(offset);
    for (std::size_t i = 0; i < n_; ++i) data()[i] = 0;
    fence(true);
  }
  Guarded(std::initializer_list<T> values) : Guarded(static_cast<Index>(values.size()), 0) {
    std::copy(values.begin(), values.end(), data());
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { fence(false); }

  [[nodiscard]] T* data() { return memory_.data() + begin_; }
  [[nodiscard]] const T* data() const { return memory_.data() + begin_; }
  [[nodiscard]] Index size() const { return static_cast<Index>(n_); }
  T& operator[](Index i) { return data()[i]; }
  T operator[](Index i) const { return data()[i]; }

  /// Standard normal numbers times `scale` plus `mean`.
  Guarded& fill(Rng& rng, double scale = 1, double mean = 0) {
    for (std::size_t i = 0; i < n_; ++i) data()[i] = static_cast<T>(scale * rng.normal() + mean);
    return *this;
  }

  /// Whether everything around the row is as it was.
  [[nodiscard]] bool intact() const {
    fence(false);
    bool same = true;
    for (std::size_t i = 0; i < memory_.size(); ++i)
      if (i < begin_ || i >= begin_ + n_)
        same = same && std::bit_cast<Bits>(memory_[i]) == std::bit_cast<Bits>(guard());
    fence(true);
    return same;
  }

 private:
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  static constexpr std::size_t kLine = 64 / sizeof(T);  // a vector of the widest kind
  static constexpr std::size_t kMargin = 2 * 16;        // offsets go up to 15

  /// A NaN that no arithmetic makes.
  static T guard() {
    return std::bit_cast<T>(
        static_cast<Bits>(std::bit_cast<Bits>(std::numeric_limits<T>::quiet_NaN()) | 0xDEAD));
  }

  void fence([[maybe_unused]] bool up) const {
#if defined(__SANITIZE_ADDRESS__)
    const T* const row = data();
    const T* const end = memory_.data() + memory_.size();
    if (up) {
      __asan_poison_memory_region(memory_.data(), begin_ * sizeof(T));
      __asan_poison_memory_region(row + n_, static_cast<std::size_t>(end - row - size()) * sizeof(T));
    } else {
      __asan_unpoison_memory_region(memory_.data(), memory_.size() * sizeof(T));
    }
#endif
  }

  std::size_t n_, begin_ = 0;
  std::vector<T> memory_;
};

/// Calls f(n, offset) for rows of 1 to 67 elements, which is every remainder of every kind of vector
/// after up to four whole ones (and sixteen of the shortest), from each start in a line of memory.
template <class F>
void for_each_row(F f) {
  for (Index n = 1; n <= 67; ++n)
    for (Index offset = 0; offset < 16; ++offset) f(n, offset);
}

/// max |a - b| / scale; infinite when one of them is not a number. scale 0: max |b|.
template <class A, class B>
double gap(const A& a, const std::vector<B>& b, double scale = 0) {
  const double largest = scale;
  double worst = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double x = static_cast<double>(a[static_cast<Index>(i)]), y = static_cast<double>(b[i]);
    if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, std::fabs(x - y));
    if (largest == 0) scale = std::max(scale, std::fabs(y));
  }
  return worst == 0 ? 0 : worst / scale;
}

}  // namespace headwise::test
