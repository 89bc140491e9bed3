// Rows for kernels: somewhere in aligned memory, between numbers nobody may read or write.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <type_traits>
#include <vector>

#include "headwise/core/random.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define HEADWISE_TEST_FENCE
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEADWISE_TEST_FENCE
#endif
#endif
#ifdef HEADWISE_TEST_FENCE
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
    for (Index i = 0; i < n; ++i) data()[i] = 0;
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
  void fill(Rng& rng, double scale = 1, double mean = 0) {
    for (std::size_t i = 0; i < n_; ++i) data()[i] = static_cast<T>(scale * rng.normal() + mean);
  }
  void fill(T value) { std::fill_n(data(), n_, value); }
  void copy(const Guarded& other) { std::copy_n(other.data(), n_, data()); }

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
#ifdef HEADWISE_TEST_FENCE
    const T* const row = data();
    const T* const end = memory_.data() + memory_.size();
    if (up) {
      __asan_poison_memory_region(memory_.data(), begin_ * sizeof(T));
      __asan_poison_memory_region(row + n_,
                                  static_cast<std::size_t>(end - row - size()) * sizeof(T));
    } else {
      __asan_unpoison_memory_region(memory_.data(), memory_.size() * sizeof(T));
    }
#endif
  }

  std::size_t n_, begin_ = 0;
  std::vector<T> memory_;
};

/// Calls f(n, offset) for rows of 1 to 67 elements, which is every remainder of every kind of
/// vector after up to four whole ones (and sixteen of the shortest), from each start in a line of
/// memory.
template <class F>
void for_each_row(F f) {
  for (Index n = 1; n <= 67; ++n)
    for (Index offset = 0; offset < 16; ++offset) f(n, offset);
}

/// The distance of 1 from the next T.
template <Real T>
constexpr double kEps = static_cast<double>(std::numeric_limits<T>::epsilon());

/// max |a - b| / scale in units of kEps, where scale 0 stands for max |b|; infinite when a value is
/// not a number.
template <Real T>
double gap(const Guarded<T>& a, const std::vector<double>& b, double scale = 0) {
  if (scale == 0)
    for (const double y : b) scale = std::max(scale, std::fabs(y));
  double worst = 0;
  for (Index i = 0; i < a.size(); ++i) {
    const double away = std::fabs(static_cast<double>(a[i]) - b[static_cast<std::size_t>(i)]);
    if (std::isnan(away)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, away);
  }
  return worst == 0 ? 0 : worst / scale / kEps<T>;
}

/// Whether two rows are the same to the bit.
template <Real T>
bool same_bits(const Guarded<T>& a, const Guarded<T>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(T)) == 0;
}

/// Whether f(i) holds for every element.
template <Real T, class F>
bool all_of(const Guarded<T>& x, F f) {
  for (Index i = 0; i < x.size(); ++i)
    if (!f(i)) return false;
  return true;
}

}  // namespace headwise::test
