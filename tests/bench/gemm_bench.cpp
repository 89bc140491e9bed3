// How fast are the matrix products of our models? y = x w^T on all cores, with x (M,K) and w (N,K).
#include <benchmark/benchmark.h>

#include <cstddef>
#include <vector>

#include "headwise/core/gemm.hpp"
#include "headwise/core/random.hpp"

namespace headwise {
namespace {

using benchmark::Counter;

/// Rows of a whole batch: how many operations a second.
void batch_product(benchmark::State& state) {
  const Index m = state.range(0), n = state.range(1), k = state.range(2);
  Rng rng(1);
  const auto x = normal_tensor<float>({m, k}, 1, rng);
  const auto w = normal_tensor<float>({n, k}, 1, rng);
  auto y = Tensor<float>::uninitialized({m, n});
  const Mat<float> target = as_rows(y);
  for (auto _ : state) gemm<float>(1, as_rows(x), as_rows(w).t(), 0, target);
  state.counters["FLOP/s"] =
      Counter(2.0 * static_cast<double>(m * n * k), Counter::kIsIterationInvariantRate);
}
BENCHMARK(batch_product)
    ->ArgNames({"M", "N", "K"})
    ->Args({1024, 64, 64})     // toy: a projection
    ->Args({1024, 192, 64})    // toy: three in one
    ->Args({768, 512, 128})    // nano: into the MLP
    ->Args({4096, 1536, 384})  // char: into the MLP
    ->Args({256, 50257, 768})  // gpt2: logits
    ->UseRealTime();

/// The one row of a token that is sampled: how fast its weight comes from memory. As in a model,
/// the next product needs another weight, so that none stays in the cache.
void row_product(benchmark::State& state) {
  constexpr Index kStreamed = Index{512} << 20;  // bytes of weights, more than a cache holds
  const Index n = state.range(0), k = state.range(1);
  const Index bytes = n * k * Index{sizeof(float)};
  Rng rng(1);
  const auto x = normal_tensor<float>({1, k}, 1, rng);
  std::vector<Tensor<float>> weights;
  for (Index held = 0; held < kStreamed; held += bytes)
    weights.push_back(Tensor<float>::full({n, k}, 0.5F));
  auto y = Tensor<float>::uninitialized({1, n});
  const Mat<float> target = as_rows(y);
  std::size_t next = 0;
  for (auto _ : state) {
    const Tensor<float>& w = weights[next];
    gemm<float>(1, as_rows(x), as_rows(w).t(), 0, target);
    next = (next + 1) % weights.size();
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}
BENCHMARK(row_product)
    ->ArgNames({"N", "K"})
    ->Args({768, 768})
    ->Args({3072, 768})
    ->Args({50257, 768})
    ->UseRealTime();

}  // namespace
}  // namespace headwise
