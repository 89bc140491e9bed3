#include "headwise/core/memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "headwise/core/tensor.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"

using namespace headwise;

namespace {
constexpr std::size_t kMebi = 1 << 20;
constexpr Index kFloats = kMebi / sizeof(float);
}  // namespace

TEST_CASE("live buffers and bytes return to the start when tensors go", "[core]") {
  const MemoryStats start = memory_stats();
  {
    const auto small = Tensor<float>::zeros({3});
    const auto large = Tensor<double>::zeros({1000, 100});
    const Tensor<float> copy = small;
    const Tensor<double> view = large.reshape({100, 1000});
    CHECK(memory_stats().live_buffers == start.live_buffers + 2);  // copies and views are free
    CHECK(memory_stats().live_bytes >= start.live_bytes + 3 * 4 + 100000 * 8);

    Tensor<float> written = small;
    written.data()[0] = 1;
    CHECK(memory_stats().live_buffers == start.live_buffers + 3);
  }
  CHECK(memory_stats().live_buffers == start.live_buffers);
  CHECK(memory_stats().live_bytes == start.live_bytes);
}

TEST_CASE("a constructor that throws leaves no buffer behind", "[core]") {
  const MemoryStats start = memory_stats();
  CHECK_THROWS(Tensor<float>({kFloats}, {1, 2, 3}));
  CHECK(memory_stats().live_buffers == start.live_buffers);
  CHECK(memory_stats().live_bytes == start.live_bytes);
}

TEST_CASE("a large buffer is used again", "[core]") {
  if (test::kSanitized) return;  // the pool does not cache then, so that every release is seen
  { const auto first = Tensor<float>::uninitialized({kFloats}); }
  const MemoryStats warm = memory_stats();
  CHECK(warm.cached_bytes >= kMebi);
  for (int i = 0; i < 100; ++i) {
    const auto again = Tensor<float>::uninitialized({kFloats});
    const MemoryStats now = memory_stats();
    CHECK(now.cached_bytes == warm.cached_bytes - (now.live_bytes - warm.live_bytes));
  }
  // Lengths that differ a little share a buffer, and so do the two precisions.
  { const auto other = Tensor<double>::uninitialized({kFloats / 2 - 100}); }
  CHECK(memory_stats().large_allocations == warm.large_allocations);
  CHECK(memory_stats().cached_bytes == warm.cached_bytes);

  const auto one = Tensor<float>::uninitialized({kFloats});
  const auto two = Tensor<float>::uninitialized({kFloats});  // the first is still taken
  CHECK(one.data() != two.data());
}

TEST_CASE("a buffer starts at a line of the cache and holds what was asked for", "[core]") {
  for (const Index n : {1, 15, 16, 17, 1000, 16384, 16385, 100003}) {
    CAPTURE(n);
    auto x = Tensor<float>::uninitialized({n});
    CHECK(reinterpret_cast<std::uintptr_t>(x.data()) % 64 == 0);
    const MemoryStats before = memory_stats();
    const auto y = Tensor<float>::uninitialized({n});
    const std::size_t taken = memory_stats().live_bytes - before.live_bytes;
    const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(float);
    CHECK(taken >= bytes);
    CHECK(taken <= bytes + std::max<std::size_t>(63, bytes / 8));
  }
}

TEST_CASE("tensors may be made and dropped on many threads at once", "[core]") {
  const MemoryStats start = memory_stats();
  std::atomic<int> ready = 0, mixed_up = 0;
  std::vector<std::thread> team;
  for (int t = 0; t < 4; ++t)
    team.emplace_back([&, t] {
      ++ready;
      while (ready < 4) std::this_thread::yield();
      for (Index i = 0; i < 20000; ++i) {
        const auto value = static_cast<float>(t);
        // Now and then a buffer so large that it is kept.
        auto x = Tensor<float>::full({i % 100 == 0 ? 20000 : i % 7 + 1}, value);
        if (x.data()[0] != value || x.data()[x.size() - 1] != value) ++mixed_up;
      }
    });
  for (std::thread& t : team) t.join();
  CHECK(mixed_up == 0);
  CHECK(memory_stats().live_buffers == start.live_buffers);
  CHECK(memory_stats().live_bytes == start.live_bytes);
}
