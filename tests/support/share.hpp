// How many of a thousand like cases a build runs.
#pragma once

#include <cstddef>

namespace headwise::test {

/// Every so many of them. Under sanitizers a case takes ten times as long, and what these look for,
/// a wrong access or an overflow, lies on a way that thousands of mistakes or shapes take alike:
/// there a tenth is run, and all in the other job of .ci/run. It shares no factor with the number
/// of ops, so that taken in turn all have their part.
#ifdef HEADWISE_SANITIZED
inline constexpr std::size_t kEvery = 11;
#else
inline constexpr std::size_t kEvery = 1;
#endif

}  // namespace headwise::test
