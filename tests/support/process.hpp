// How much memory this process has, as Linux counts it.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace headwise::test {

// Sanitizers keep freed memory and shadow what is in use: the numbers below mean nothing there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

/// Bytes in physical memory.
inline std::int64_t resident_bytes() {
  std::int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

/// The most there ever was; 0 where the kernel does not tell.
inline std::int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") {
      std::int64_t kib = 0;
      status >> kib;
      return kib * 1024;
    }
  return 0;
}

}  // namespace headwise::test
