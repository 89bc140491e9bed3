// The time that a check may take.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

#include "headwise/core/shape.hpp"

namespace headwise {

class Budget {
 public:
  /// In seconds, from now on; 0: no limit.
  explicit Budget(double seconds) : seconds_(seconds) {}

  [[nodiscard]] bool limited() const { return seconds_ > 0; }
  [[nodiscard]] double spent() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  /// Whether that part of the time is over.
  [[nodiscard]] bool over(double part) const { return limited() && spent() > part * seconds_; }
  [[nodiscard]] double left() const {
    return limited() ? std::max(0.0, seconds_ - spent()) : std::numeric_limits<double>::infinity();
  }

  /// What it takes to move an element, in seconds, once it is known.
  void element_takes(double seconds) { element_ = seconds; }
  /// How many elements there is still time for.
  [[nodiscard]] Index elements_left() const {
    const double most = static_cast<double>(std::numeric_limits<Index>::max() / 2);
    return limited() && element_ > 0 ? static_cast<Index>(std::min(most, left() / element_))
                                     : static_cast<Index>(most);
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double seconds_, element_ = 0;
};

}  // namespace headwise
