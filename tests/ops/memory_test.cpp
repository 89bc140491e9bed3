// Attention holds no (B,H,T,S) tensor unless a tap asked for it, nor a loss all its logits.
#include <fstream>

#include "headwise/core/memory.hpp"
#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"
#include "support/taps.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

constexpr Index kLongTime = 2048, kFewHeads = 2;
constexpr std::int64_t kPattern =
    kFewHeads * kLongTime * kLongTime * 4;  // bytes of it in float: 32 MiB

/// By how much some work raises the most memory this process ever had, and what its buffer pool
/// ever held.
struct Rise {
  std::int64_t resident, pool;
  bool known;  ///< whether the system let us count `resident` from now on
};

Rise rise_of(FunctionRef<void()> work) {
  const auto pool_bytes = [] {  // large buffers are kept: the sum never falls
    const MemoryStats now = memory_stats();
    return static_cast<std::int64_t>(now.live_bytes + now.cached_bytes);
  };
  std::ofstream from_now("/proc/self/clear_refs");  // 5: the most so far is what there is now
  from_now << 5 << std::flush;
  const std::int64_t resident = peak_resident_bytes(), pool = pool_bytes();
  work();
  return {peak_resident_bytes() - resident, pool_bytes() - pool, from_now.good()};
}

/// Attention, forward and backward.
Rise rise_of_attention(PatternTap<float>* tap, const Mask& mask = causal()) {
  const Attend<float> how{.heads = kFewHeads, .mask = mask, .tap = tap};
  const std::vector<Tensor<float>> x(3, random_tensor<float>({1, kLongTime, kFewHeads * 8}, 1));
  return rise_of(
      [&] { pass<float>([&](const auto& v) { return attention(v[0], v[1], v[2], how); }, x); });
}

}  // namespace

TEST_CASE("without a tap attention holds no whole pattern", "[ops][attention][memory]") {
  if (kSanitized) return;
  for (const Mask& mask : {causal(), causal() & keys_below({kLongTime - 100})}) {
    const Rise without = rise_of_attention(nullptr, mask);
    CHECK(without.pool < kPattern / 4);
    if (without.known) CHECK(without.resident < kPattern / 2);
  }

  KeepPattern<float> tap;  // with one it does, which shows that the numbers above could fail
  const Rise with = rise_of_attention(&tap);
  CHECK(with.pool >= kPattern);
  if (with.known) CHECK(with.resident >= kPattern * 3 / 4);
}

TEST_CASE("linear_cross_entropy never holds whole logits", "[ops][loss][memory]") {
  if (kSanitized) return;
  constexpr Index kRows = 6000, kVocab = 5000;
  constexpr std::int64_t kLogits = kRows * kVocab * 4;  // 114 MiB: larger than any buffer so far
  const Var<float> w = random_tensor<float>({kVocab, 4}, 2);
  const Ids labels({kRows}, std::vector<Id>(kRows, 7));
  const auto rise = [&](auto loss) {
    return rise_of([&] {
      Tape<float> tape;
      loss(tape.leaf(Tensor<float>::zeros({kRows, 4})));
    });
  };
  const Rise without =
      rise([&](const Var<float>& x) { return linear_cross_entropy(x, w, labels); });
  CHECK(without.pool < kLogits / 4);
  if (without.known) CHECK(without.resident < kLogits / 2);

  const Rise with = rise([&](const Var<float>& x) { return cross_entropy(linear(x, w), labels); });
  CHECK(with.pool >= kLogits);  // so the numbers above could fail
  if (with.known) CHECK(with.resident >= kLogits * 3 / 4);
}

TEST_CASE("inference leaves nothing behind", "[ops][attention][memory]") {
  const Tensor<float> x = random_tensor<float>({1, 64, 16}, 1);
  const std::size_t before = memory_stats().live_buffers;
  {
    const Var<float> y = attention<float>(x, x, x, {.heads = 2});
    CHECK(memory_stats().live_buffers == before + 1);  // the result alone
    CHECK(gelu(layer_norm<float>(y, {}, {})).shape() == y.shape());
  }
  CHECK(memory_stats().live_buffers == before);
}
