// How fast is attention() by itself, and what does it cost to watch its pattern?
// One sequence of T tokens, H heads of width D, causal.
#include <benchmark/benchmark.h>

#include "headwise/core/random.hpp"
#include "headwise/ops/ops.hpp"

namespace headwise {
namespace {

using benchmark::Counter;

/// Has the pattern made, looks at it, and leaves it as it is.
struct Watcher : PatternTap<float> {
  bool see(Tensor<float>& pattern) override {
    benchmark::DoNotOptimize(pattern.values().front());
    return false;
  }
};

enum class Pass { forward, both };

void attention_pass(benchmark::State& state, Pass pass, bool watched) {
  const Index t = state.range(0), heads = state.range(1), d = state.range(2);
  const Shape shape{1, t, heads * d};
  Rng rng(1);
  const auto q = normal_tensor<float>(shape, 1, rng), k = normal_tensor<float>(shape, 1, rng),
             v = normal_tensor<float>(shape, 1, rng), dy = normal_tensor<float>(shape, 1, rng);
  Watcher watcher;
  const Attend<float> how{.heads = heads, .tap = watched ? &watcher : nullptr};
  for (auto _ : state) {
    if (pass == Pass::forward) {
      benchmark::DoNotOptimize(attention<float>(q, k, v, how));
    } else {
      Tape<float> tape;
      tape.backward(attention<float>(tape.leaf(q), tape.leaf(k), tape.leaf(v), how), dy);
    }
  }
  // Two products forward and four backward, over the pairs that the mask shows.
  const Index products = pass == Pass::forward ? 2 : 6;
  state.counters["FLOP/s"] = Counter(static_cast<double>(products * heads * d * t * (t + 1)),
                                     Counter::kIsIterationInvariantRate);
}

constexpr Index kShortest = 64, kLongest = 4096;

/// T from 64 to `longest`, for small heads and for those of gpt2.
template <Index longest>
void sizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"T", "H", "D"})->UseRealTime();
  for (Index t = kShortest; t <= longest; t *= 4) {
    b->Args({t, 4, 16});
    b->Args({t, 12, 64});
  }
}
BENCHMARK_CAPTURE(attention_pass, forward, Pass::forward, false)->Apply(sizes<kLongest>);
BENCHMARK_CAPTURE(attention_pass, both, Pass::both, false)->Apply(sizes<kLongest>);
// The whole pattern is H T T floats: not at every length.
BENCHMARK_CAPTURE(attention_pass, forward_watched, Pass::forward, true)->Apply(sizes<kLongest / 4>);
BENCHMARK_CAPTURE(attention_pass, both_watched, Pass::both, true)->Apply(sizes<kLongest / 4>);

}  // namespace
}  // namespace headwise
