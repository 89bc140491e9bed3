// One run is one run: stopped and resumed, on any threads, beside another, watched or not.
#include <thread>

#include "support/catch.hpp"
#include "support/training.hpp"

using namespace headwise;
using test::kSmallModel;
using test::kSmallTraining;
using test::same_bits;
using test::Training;
using test::weights_of;

namespace {

/// Large enough that every op is cut into several blocks.
const ModelConfig kWide{
    .vocab = 40, .layers = 1, .heads = 4, .width = 64, .context = 64, .dropout = 0.1};
const TrainOptions kFewSteps{.batch = 8, .steps = 20, .lr = 1e-2, .min_lr = 1e-3, .warmup = 4};

std::string trained_wide(int threads) {
  const test::Threads guard(threads);
  Training<float> t(kWide, kFewSteps, 1);
  t.run(20);
  return t.saved();
}

}  // namespace

TEMPLATE_TEST_CASE("a run that stops and resumes is the same run to the bit", "[train][resume]",
                   float, double) {
  const test::OneThread quick;
  Training<TestType> straight(kSmallModel, kSmallTraining, 1),
      first(kSmallModel, kSmallTraining, 1);
  auto losses = straight.run(7);
  straight.trainer.evaluate();
  const auto rest = straight.run(13);
  losses.insert(losses.end(), rest.begin(), rest.end());

  const test::TemporaryFolder folder;
  auto resumed_losses = first.run(7);
  first.trainer.evaluate();
  for (const double loss : first.run(3)) resumed_losses.push_back(loss);
  first.trainer.save(folder / "last");
  Training<TestType> second(kSmallModel, kSmallTraining,
                            99);  // another seed: load() brings its own
  second.trainer.load(folder / "last");
  CHECK(second.trainer.steps_done() == 10);
  CHECK(second.trainer.val_loss() == straight.trainer.val_loss());
  CHECK(second.trainer.best_val_loss() == straight.trainer.best_val_loss());
  CHECK((second.saved() == read_file(folder / "last")));
  for (const double loss : second.run(10)) resumed_losses.push_back(loss);

  CHECK(resumed_losses == losses);
  CHECK(same_bits(weights_of(second.model), weights_of(straight.model)));
  CHECK((second.saved() == straight.saved()));  // moments, counters, random state
  const EvalRecord a = straight.trainer.evaluate(), b = second.trainer.evaluate();
  CHECK(a.train_loss == b.train_loss);
  CHECK(a.val_loss == b.val_loss);
  CHECK(a.best == b.best);
  CHECK((second.saved() == straight.saved()));
}

TEST_CASE("loading forgets whatever the trainer had done before", "[train][resume]") {
  const test::OneThread quick;
  const test::TemporaryFolder folder;
  Training<float> fresh(kSmallModel, kSmallTraining, 1), used(kSmallModel, kSmallTraining, 1);
  fresh.trainer.save(folder / "start");
  used.run(3);
  used.trainer.evaluate();
  used.trainer.load(folder / "start");
  CHECK((used.saved() == fresh.saved()));
  CHECK(used.run(3) == fresh.run(3));
  CHECK((used.saved() == fresh.saved()));
}

TEST_CASE("a run has the same bits on any number of threads", "[train][threads]") {
  const std::string one = trained_wide(1);
  CHECK((trained_wide(2) == one));
  CHECK((trained_wide(4) == one));
}

TEST_CASE("a run has the same bits on any thread", "[train][threads]") {
  const std::string here = trained_wide(2);
  std::string there;
  std::thread([&] { there = trained_wide(2); }).join();
  CHECK((there == here));
}

TEST_CASE("two runs with interleaved steps equal two runs apart", "[train][resume]") {
  const test::OneThread quick;
  Training<float> a(kSmallModel, kSmallTraining, 1), b(kSmallModel, kSmallTraining, 2);
  Training<float> a_alone(kSmallModel, kSmallTraining, 1), b_alone(kSmallModel, kSmallTraining, 2);
  for (int step = 0; step < 10; ++step) {
    a.run(1);
    b.run(1);
  }
  a_alone.run(10);
  b_alone.run(10);
  CHECK((a.saved() == a_alone.saved()));
  CHECK((b.saved() == b_alone.saved()));
  CHECK((a.saved() != b.saved()));
}

TEST_CASE("a run that is watched has the same bits", "[train][probe]") {
  const test::OneThread quick;
  const auto train = [](Probe<float>* probe) {
    Rng rng(1);
    Decoder<float> model(kSmallModel, rng);
    AdamW<float> adam;
    for (std::uint64_t step = 0; step < 20; ++step) {
      const Batch batch{test::random_ids({4, 8}, 10, step), test::random_ids({4, 8}, 10, step + 1)};
      Rng dropout(1, step);
      zero_grad(model);
      Tape<float> tape;
      const Ctx<float> ctx{.tape = &tape, .probe = probe, .random = &dropout};
      tape.backward(cross_entropy(model(ctx, batch.inputs), batch.targets));
      adam.step(model, 1e-2, clip_factor(gradient_norm(model), 1));
    }
    return weights_of(model);
  };
  test::Recorder<float> probe;
  CHECK(same_bits(train(nullptr), train(&probe)));
  CHECK(probe.seen.size() == 27);
  CHECK(std::count(probe.asked.begin(), probe.asked.end(), "logits") == 20);
}
