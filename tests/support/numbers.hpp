// Numbers that are not finite, under short names.
#pragma once

#include <limits>

namespace headwise::test {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInf = std::numeric_limits<double>::infinity();

}  // namespace headwise::test
