#include "cli/study_budget.hpp"

#include "support/catch.hpp"

using namespace headwise;
using namespace headwise::cli;

namespace {

/// Sequences of which all positions count.
study::Sequences sequences(Index count, Index time) {
  const std::vector<Id> ids(static_cast<std::size_t>(count * time), 1);
  return {{Ids({count, time}, ids), Ids({count, time}, ids)},
          std::vector<Index>(static_cast<std::size_t>(count), time)};
}

constexpr Index kCharWeights = 10760000, kBigWeights = 124000000;
const ModelConfig kSmall{.vocab = 40, .layers = 2, .heads = 4, .width = 64, .context = 64},
    kChar{.vocab = 40, .layers = 6, .heads = 6, .width = 384, .context = 256},
    kBig{.vocab = 50257, .layers = 12, .heads = 12, .width = 768, .context = 1024};

}  // namespace

TEST_CASE("a small model is ablated on all there is", "[cli][study]") {
  const AblationPlan plan = plan_ablation(kSmall, 100000, sequences(100, 64));
  CHECK(plan.sequences == 100);
  CHECK(plan.length == 64);
  CHECK(plan.points == 9);
  CHECK(plan.ways == study::Ways::all);
}

TEST_CASE("what cannot be afforded is cut: length, points, ways", "[cli][study]") {
  const AblationPlan plan = plan_ablation(kChar, kCharWeights, sequences(100, 256));
  CHECK(plan.sequences == 5);
  CHECK(plan.length == 128);
  CHECK(plan.points == 9);
  CHECK(plan.ways == study::Ways::all);
  // With half the weights the sequences are cut less, with some more there are fewer points.
  CHECK(plan_ablation(kChar, kCharWeights / 2, sequences(100, 256)).length == 256);
  const AblationPlan fewer = plan_ablation(kChar, kCharWeights * 14 / 10, sequences(100, 256));
  CHECK(fewer.sequences == 4);
  CHECK(fewer.points == 5);
  CHECK(fewer.ways == study::Ways::all);
  const AblationPlan big = plan_ablation(kBig, kBigWeights, sequences(100, 1024));
  CHECK(big.sequences == 4);
  CHECK(big.length == 128);
  CHECK(big.points == 5);
  CHECK(big.ways == study::Ways::zero);
}

TEST_CASE("fewer sequences than are wanted are no reason to cut", "[cli][study]") {
  const AblationPlan plan = plan_ablation(kChar, kCharWeights, sequences(1, 256));
  CHECK(plan.sequences == 1);
  CHECK(plan.length == 256);
}

TEST_CASE("no sequence is cut before its only targets", "[cli][study]") {
  study::Sequences data = sequences(6, 1024);
  std::fill_n(data.batch.targets.values.begin(), 200, kIgnore);  // of the first sequence
  CHECK(plan_ablation(kBig, kBigWeights, data).length == 256);
  std::fill_n(data.batch.targets.values.begin(), 1024, kIgnore);  // none to lose
  CHECK(plan_ablation(kBig, kBigWeights, data).length == 128);
}

TEST_CASE("batches hold the beginnings, two and more at a time, and small patterns",
          "[cli][study]") {
  study::Sequences data = sequences(7, 1024);
  for (std::size_t i = 0; i < data.batch.inputs.values.size(); ++i)
    data.batch.inputs.values[i] = static_cast<Id>(i);
  const auto counts = [&](const AblationPlan& plan) {
    std::vector<Index> all;
    Index next = 0;
    for (const Batch& b : ablated_batches(kBig, data, plan)) {
      all.push_back(b.inputs.shape[0]);
      CHECK(b.targets.shape == b.inputs.shape);
      CHECK(b.inputs.shape[1] == plan.length);
      for (Index i = 0; i < b.inputs.shape.size(); ++i)
        if (b.inputs.values[static_cast<std::size_t>(i)] !=
            (next + i / plan.length) * 1024 + i % plan.length)
          FAIL("another token");
      next += b.inputs.shape[0];
    }
    return all;
  };
  // A sequence has 144 patterns: 2.4 million numbers of 128 tokens, 151 million of 1024.
  CHECK(counts({.sequences = 7, .length = 128}) == std::vector<Index>{7});
  CHECK(counts({.sequences = 6, .length = 256}) == std::vector<Index>{3, 3});
  CHECK(counts({.sequences = 7, .length = 1024}) == std::vector<Index>{2, 2, 3});
  CHECK(counts({.sequences = 1, .length = 1024}) == std::vector<Index>{1});
}

TEST_CASE("sequences that are equal once they are cut are ablated once", "[cli][study]") {
  study::Sequences data = sequences(5, 16);
  data.batch.inputs.values[15] = 2;       // of the first: behind the cut
  data.batch.inputs.values[16 + 3] = 2;   // of the second: before it
  data.batch.inputs.values[32 + 12] = 2;  // of the third
  const auto rows = [&](Index length) {
    Index all = 0;
    for (const Batch& b : ablated_batches(kSmall, data, {.sequences = 4, .length = length}))
      all += b.inputs.shape[0];
    return all;
  };
  CHECK(rows(16) == 4);
  CHECK(rows(13) == 3);
  CHECK(rows(8) == 2);
  CHECK(rows(3) == 1);
}
