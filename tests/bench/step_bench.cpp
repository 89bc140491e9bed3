// How long is a whole training step of the small presets, on one thread and on two?
#include <benchmark/benchmark.h>

#include <string_view>

#include "headwise/core/parallel.hpp"
#include "headwise/models/presets.hpp"
#include "headwise/train/trainer.hpp"

namespace headwise {
namespace {

TextSource random_text(Index vocab, Index context) {
  constexpr Index kTokens = 200'000;
  Rng rng(1);
  Split text;
  for (Index i = 0; i < kTokens; ++i) text.train.push_back(static_cast<Id>(rng.below(vocab)));
  return TextSource(std::move(text), context);
}

void training_step(benchmark::State& state, std::string_view name) {
  const Preset& preset = headwise::preset("bench", name);
  set_threads(static_cast<int>(state.range(0)));
  Rng rng(1);
  Decoder<float> model(preset.model, rng);
  const TextSource text = random_text(preset.model.vocab, preset.model.context);
  Trainer<float> trainer(model, {.batch = preset.batch, .steps = 1'000'000'000}, text, 1);
  for (auto _ : state) trainer.step();
  state.counters["tokens/s"] =
      benchmark::Counter(static_cast<double>(preset.batch * preset.model.context),
                         benchmark::Counter::kIsIterationInvariantRate);
}

void one_and_two(benchmark::internal::Benchmark* b) {
  b->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(training_step, toy, "toy")->Apply(one_and_two);
BENCHMARK_CAPTURE(training_step, nano, "nano")->Apply(one_and_two);

}  // namespace
}  // namespace headwise
