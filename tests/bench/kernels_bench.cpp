// What does an element cost in the vector kernels? One thread, memory that fits the cache.
#include <benchmark/benchmark.h>

#include <vector>

#include "headwise/core/random.hpp"
#include "kernels/kernels.hpp"

namespace headwise {
namespace {

using benchmark::Counter;

std::vector<float> normal_numbers(Index n) {
  Rng rng(1);
  const auto x = normal_tensor<float>({n}, 1, rng);
  return {x.values().begin(), x.values().end()};
}

/// Runs `kernel` on rows of n elements, and reports the time of one element.
void per_element(benchmark::State& state, Index n, auto&& kernel) {
  for (auto _ : state) {
    kernel();
    benchmark::ClobberMemory();
  }
  state.counters["s/element"] =
      Counter(static_cast<double>(n), Counter::kIsIterationInvariantRate | Counter::kInvert);
}

void softmax_row(benchmark::State& state) {
  const Index n = state.range(0);
  auto x = normal_numbers(n);
  per_element(state, n, [&] { benchmark::DoNotOptimize(kernels::softmax(x.data(), n)); });
}

void layer_norm_row(benchmark::State& state) {
  const Index n = state.range(0);
  const auto x = normal_numbers(n), gain = normal_numbers(n), bias = normal_numbers(n);
  auto y = x;
  per_element(state, n, [&] {
    benchmark::DoNotOptimize(
        kernels::layer_norm(x.data(), gain.data(), bias.data(), 1e-5F, y.data(), n));
  });
}

void gelu_with_slope(benchmark::State& state, decltype(kernels::gelu_exact<float>) gelu) {
  const Index n = state.range(0);
  const auto x = normal_numbers(n);
  auto y = x, slope = x;
  per_element(state, n, [&] { gelu(x.data(), y.data(), slope.data(), n); });
}

void adamw_update(benchmark::State& state) {
  const Index n = state.range(0);
  const kernels::AdamwStep<float> step{.grad_scale = 1,
                                       .beta1 = 0.9F,
                                       .beta2 = 0.99F,
                                       .eps = 1e-8F,
                                       .keep = 0.9999F,
                                       .rate = 1e-3F,
                                       .unbias2 = 1};
  const auto g = normal_numbers(n);
  auto p = g;
  std::vector<float> m(g.size()), v(g.size());
  per_element(state, n, [&] { kernels::adamw(step, g.data(), m.data(), v.data(), p.data(), n); });
}

void rows(benchmark::internal::Benchmark* b) { b->ArgName("n")->Arg(64)->Arg(512)->Arg(4096); }

BENCHMARK(softmax_row)->Apply(rows);
BENCHMARK(layer_norm_row)->Apply(rows);
BENCHMARK_CAPTURE(gelu_with_slope, exact, kernels::gelu_exact<float>)->Apply(rows);
BENCHMARK_CAPTURE(gelu_with_slope, tanh, kernels::gelu_tanh<float>)->Apply(rows);
BENCHMARK(adamw_update)->Apply(rows);

}  // namespace
}  // namespace headwise
