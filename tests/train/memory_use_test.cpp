#include "headwise/train/memory_use.hpp"

#include "headwise/core/memory.hpp"
#include "support/catch.hpp"
#include "support/models.hpp"
#include "support/process.hpp"
#include "support/training.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

ModelConfig shape_of(Index layers, Index width, Index context) {
  ModelConfig c;
  c.vocab = 65;
  c.layers = layers;
  c.width = width;
  c.context = context;
  return c;
}

}  // namespace

TEST_CASE("parameters are counted without a model", "[memory]") {
  for (const bool tie : {true, false})
    for (const bool bias : {true, false})
      for (const bool attention_only : {true, false}) {
        ModelConfig c = shape_of(3, 16, 8);
        c.tie = tie, c.bias = bias, c.attention_only = attention_only;
        Rng rng(1);
        Decoder<float> model(c, rng);
        CHECK(parameters_of(c) == static_cast<double>(parameter_count(model)));
      }
}

TEST_CASE("the largest shapes are estimated, not built", "[memory]") {
  constexpr Index kMost = 1 << 24;
  for (const ModelConfig& c : {shape_of(kMost, 64, 64), shape_of(2, kMost, 64),
                               shape_of(2, 64, kMost), shape_of(kMost, kMost, kMost)}) {
    const MemoryUse use = training_memory(c, 16, 4);
    CHECK(use.total() > 8e9);
    CHECK(std::isfinite(use.total()));
  }
  const MemoryUse whole = training_memory(shape_of(kMost, kMost, kMost), 1 << 20, 8);
  CHECK_THROWS_WITH(require_memory(whole),
                    Catch::Contains("training takes about") && Catch::Contains("weights") &&
                        Catch::Contains("available") && Catch::Contains("--force"));
  CHECK_NOTHROW(require_memory(training_memory(shape_of(1, 8, 8), 2, 4)));
}

TEST_CASE("the estimate is near what the tensors of a step take", "[memory]") {
  if (kSanitized) return;  // nothing is kept there, so the peak does not show
  for (ModelConfig c : {shape_of(4, 128, 128), shape_of(2, 64, 256), shape_of(3, 192, 64)}) {
    const MemoryStats before = memory_stats();
    Training<float> training(c, {.batch = 16}, 1);
    training.run(2);
    const MemoryStats after = memory_stats();
    // What the pool took from the system in the step stays with it.
    const auto taken = static_cast<double>(after.live_bytes + after.cached_bytes) -
                       static_cast<double>(before.live_bytes + before.cached_bytes);
    const double estimate = training_memory(c, 16, 4).total();
    CAPTURE(c.layers, c.width, c.context, estimate, taken);
    CHECK(estimate > 0.75 * taken);
  }
}

TEST_CASE("accumulated batches and vocabularies do not add up", "[memory]") {
  ModelConfig large = shape_of(2, 64, 64);
  large.vocab = 50257;
  // Of a large vocabulary the logits of some rows are held: below those of all tokens.
  CHECK(training_memory(large, 64, 4).activations <
        4.0 * 64 * 64 * 50257 + training_memory(shape_of(2, 64, 64), 64, 4).activations);
  CHECK(training_memory(large, 2, 8).weights == 2 * training_memory(large, 2, 4).weights);
}

TEST_CASE("a size has a unit", "[memory]") {
  CHECK(bytes_text(1234) == "1.2 kB");
  CHECK(bytes_text(54.3e6) == "54 MB");
  CHECK(bytes_text(7e9) == "7.0 GB");
  CHECK(bytes_text(1e30) == "1000000000000000 PB");
}

TEST_CASE("what the machine has left is known", "[memory]") { CHECK(available_memory() > 1e6); }
