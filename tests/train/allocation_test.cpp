// After its first steps a run lives on the memory that it has.
#include "headwise/core/memory.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"
#include "support/training.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

/// Buffers of 1 MiB or more taken from the system in steps 3 to 8. What is too large for groups has
/// such in its MLP.
std::size_t allocations(Index width, Index batch, int threads) {
  const Threads guard(threads);
  const ModelConfig config{
      .vocab = 40, .layers = 2, .heads = 4, .width = width, .context = 64, .dropout = 0.1};
  Training<float> t(config, {.batch = batch, .steps = 20, .lr = 1e-3, .min_lr = 1e-4}, 1);
  t.run(2);
  const std::size_t before = memory_stats().large_allocations;
  t.run(6);
  return memory_stats().large_allocations - before;
}

}  // namespace

TEST_CASE("a training step takes no large buffer from the system", "[train][memory]") {
  if (kSanitized) return;
  for (const int threads : {1, 2, 4}) {
    CAPTURE(threads);
    CHECK(allocations(128, 32, threads) == 0);  // eight groups of 256 tokens
    CHECK(allocations(128, 64, threads) == 0);  // too many tokens for groups
    CHECK(allocations(160, 8, threads) == 0);   // too wide for groups
  }
  CHECK(memory_stats().large_allocations > 0);  // what they needed came in their first steps
}
