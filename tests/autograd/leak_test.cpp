// A tape, its records and its gradients have no cycle of owners: all of it goes.
#include "headwise/core/memory.hpp"
#include "headwise/ops/ops.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"

using namespace headwise;
using namespace headwise::test;

TEST_CASE("a hundred thousand tapes leave no memory behind", "[autograd][memory]") {
  const std::size_t buffers = memory_stats().live_buffers, bytes = memory_stats().live_bytes;
  std::int64_t warm = 0;
  double wrong = 0;
  for (int round = 0; round < 100000; ++round) {
    Tape<double> tape;
    const Var<double> x = tape.leaf(Tensor<double>({1}, {1}));
    tape.backward(x * x);
    wrong += tape.grad(x).item() - 2;
    if (round == 1000) warm = resident_bytes();
  }
  CHECK(wrong == 0);
  CHECK(memory_stats().live_buffers == buffers);
  CHECK(memory_stats().live_bytes == bytes);
  if (!kSanitized) {
    REQUIRE(warm > 0);
    CHECK(resident_bytes() - warm < 5'000'000);
  }
}

TEST_CASE("an abandoned tape leaves no memory behind", "[autograd][memory]") {
  const std::size_t buffers = memory_stats().live_buffers;
  for (int round = 0; round < 1000; ++round) {
    Tape<double> tape;
    Var<double> x = tape.leaf(Tensor<double>::zeros({100}));
    for (int i = 0; i < 3; ++i) x = x * x;
    if (round % 2 == 0) {
      const Var<double> bad =
          record("mine", Tensor<double>::zeros({}), {x}, [](const Tensor<double>&, Grads<double>&) {
            throw UsageError("a backward that gives up");
          });
      CHECK_THROWS_WITH(tape.backward(bad), "a backward that gives up");
    }
  }
  CHECK(memory_stats().live_buffers == buffers);
}

TEST_CASE("backward frees what the records saved as it passes", "[autograd][memory]") {
  const std::size_t before = memory_stats().live_bytes;
  constexpr Index kSize = 1 << 16;
  Tape<double> tape;
  {
    Var<double> x = tape.leaf(Tensor<double>::full({kSize}, 1));
    for (int i = 0; i < 20; ++i) x = x * x;
    CHECK(memory_stats().live_bytes - before >= 20 * kSize * sizeof(double));
    tape.backward(sum(x));
  }
  CHECK(memory_stats().live_bytes - before < 3 * kSize * sizeof(double));  // the leaf's gradient
}
