#include "headwise/core/memory.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "core/pool.hpp"

// Sanitizers must see every allocation and release.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HEADWISE_NO_CACHE
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEADWISE_NO_CACHE
#endif

namespace headwise {
namespace {

constexpr std::size_t kLarge = 1024 * 1024;  // counted
constexpr std::size_t kKept = 4 * 1024;      // from here on the system is slower than the pool
#ifdef HEADWISE_NO_CACHE
constexpr bool kCache = false;
#else
constexpr bool kCache = true;
#endif

struct Pool {
  std::mutex mutex;
  std::map<std::size_t, std::vector<void*>> free;  // by rounded size
  MemoryStats stats;
  bool poison = false;
};

Pool& pool() {
  static Pool& instance = *new Pool;
  return instance;
}

/// Rounded up to an eighth of the next lower power of two (64 bytes at least), so that lengths that
/// vary a little share buffers and at most 12.5 % is wasted.
std::size_t rounded(std::size_t bytes) {
  const std::size_t step = std::max<std::size_t>(64, std::bit_floor(bytes | 1) / 8);
  return (std::max<std::size_t>(bytes, 1) + step - 1) / step * step;
}

}  // namespace

void* pool_take(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  void* memory = nullptr;
  if (auto found = p.free.find(size); found != p.free.end() && !found->second.empty()) {
    memory = found->second.back();
    found->second.pop_back();
    p.stats.cached_bytes -= size;
  } else {
    memory = std::aligned_alloc(64, size);
    if (memory == nullptr) {  // once more, without what is only kept
      for (auto& [bytes_each, buffers] : p.free)
        for (void* kept : buffers) std::free(kept);
      p.free.clear();
      p.stats.cached_bytes = 0;
      memory = std::aligned_alloc(64, size);
    }
    if (memory == nullptr) throw std::bad_alloc();
    if (size >= kKept) ++p.stats.allocations;
    if (size >= kLarge) ++p.stats.large_allocations;
  }
  ++p.stats.live_buffers;
  p.stats.live_bytes += size;
  return memory;
}

void pool_give(void* memory, std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  --p.stats.live_buffers;
  p.stats.live_bytes -= size;
  if (kCache && size >= kKept) {
    p.free[size].push_back(memory);
    p.stats.cached_bytes += size;
  } else {
    std::free(memory);
  }
}

namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// The first number in a file; `otherwise` where there is none ("max", no such file).
double number_in(const std::string& path, double otherwise) {
  double x = 0;
  return std::ifstream(path) >> x ? x : otherwise;
}

double machine_has_left() {
  std::ifstream file("/proc/meminfo");
  for (std::string key; file >> key;)
    if (double kib = 0; key == "MemAvailable:" && file >> kib) return kib * 1024;
  return kUnlimited;
}

double address_space_left() {
  ::rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  const double pages = number_in("/proc/self/statm", 0);
  return static_cast<double>(limit.rlim_cur) - pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

/// Version 2 and version 1 of control groups, as a container sees its own.
double control_group_left() {
  const std::string root = "/sys/fs/cgroup/", old = root + "memory/memory.";
  return std::min(
      number_in(root + "memory.max", kUnlimited) - number_in(root + "memory.current", 0),
      number_in(old + "limit_in_bytes", kUnlimited) - number_in(old + "usage_in_bytes", 0));
}

}  // namespace

double available_memory() {
  return std::max(0.0, std::min({machine_has_left(), address_space_left(), control_group_left()}));
}

bool poisoned() { return pool().poison; }
void poison_uninitialized(bool on) { pool().poison = on; }

MemoryStats memory_stats() {
  const std::lock_guard lock(pool().mutex);
  return pool().stats;
}

}  // namespace headwise
