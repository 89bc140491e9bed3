// Training and evaluating on tasks.
#include "headwise/data/source.hpp"
#include "headwise/train/evaluate.hpp"
#include "support/catch.hpp"
#include "support/training.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

/// The same two sequences at every draw.
struct TwoSequences : Source {
  Accuracy kind;
  Ids targets;
  TwoSequences(Accuracy accuracy, std::vector<Id> labels)
      : kind(accuracy), targets({2, 3}, std::move(labels)) {}
  Batch train(Index, Rng&) const override { return {Ids({2, 3}, {1, 2, 3, 3, 2, 1}), targets}; }
  Batch valid(Index batch, Rng& rng) const override { return train(batch, rng); }
  std::optional<Accuracy> accuracy() const override { return kind; }
};

/// A decoder that gives token 2 the largest logit, always.
Decoder<float> always_two() {
  Rng rng(1);
  Decoder<float> model(
      {.vocab = 4, .layers = 1, .heads = 1, .width = 4, .context = 3, .tie = false}, rng);
  model.ln_f.weight.value = Tensor<float>::zeros({4});
  model.ln_f.bias.value = Tensor<float>({4}, {1, 0, 0, 0});
  model.head->weight.value =
      Tensor<float>({4, 4}, {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0});
  return model;
}

}  // namespace

TEST_CASE("an answer is right when all, or each, of its tokens are the likeliest",
          "[train][evaluate][task]") {
  const OneThread quick;
  const Decoder<float> model = always_two();
  const auto right = [&](Accuracy kind, std::vector<Id> labels) {
    return evaluate(model, TwoSequences(kind, std::move(labels)), 2, 3);
  };
  const Id no = kIgnore;
  CHECK(right(Accuracy::whole, {no, 2, 2, no, 2, 1}).accuracy == 0.5);
  CHECK(right(Accuracy::each, {no, 2, 2, no, 2, 1}).accuracy == 0.75);
  CHECK(right(Accuracy::whole, {no, 2, no, no, no, no}).accuracy == 1);
  CHECK(right(Accuracy::whole, {0, 2, 2, 3, 2, 2}).accuracy == 0);
  CHECK(right(Accuracy::each, {0, 2, 2, 3, 2, 2}).accuracy == Approx(4. / 6));
  const double e = std::exp(1.);  // of softmax(0,0,1,0)
  const Loss loss = right(Accuracy::each, {no, 2, no, no, 1, 1});
  CHECK(loss.tokens == 9);
  CHECK(loss.mean == Approx((3 * std::log(e + 3) - 1) / 3).epsilon(1e-6));
}

TEST_CASE("a validation part that is smaller than the draws is evaluated once each",
          "[train][evaluate][task]") {
  const OneThread quick;
  const Decoder<float> model = always_two();
  /// Sequence i has the label 2 at i of its positions; drawn ones never do.
  struct Counted : TwoSequences {
    mutable std::vector<Index> asked;
    Counted() : TwoSequences(Accuracy::each, {1, 1, 1, 1, 1, 1}) {}
    Index valid_size() const override { return 4; }
    Batch valid_range(Index first, Index count) const override {
      std::vector<Id> labels;
      for (Index i = first; i < first + count; ++i) {
        asked.push_back(i);
        for (Index t = 0; t < 3; ++t) labels.push_back(t < i ? 2 : 1);
      }
      return {Ids({count, 3}, std::vector<Id>(static_cast<std::size_t>(3 * count), 1)),
              Ids({count, 3}, labels)};
    }
  };
  const Counted source;
  const Loss whole = evaluate(model, source, 3, 2);  // 6 draws would do for the 4
  CHECK(whole.each_once);
  CHECK(source.asked == std::vector<Index>{0, 1, 2, 3});
  CHECK(whole.answers == 12);
  CHECK(whole.right == 6);
  CHECK(whole.accuracy == 0.5);
  CHECK(whole.tokens == 12);
  const Loss drawn = evaluate(model, source, 3, 1);  // 3 draws are fewer than 4
  CHECK_FALSE(drawn.each_once);
  CHECK(source.asked.size() == 4);
  CHECK(drawn.right == 0);
}

TEST_CASE("a text has no answers to be right", "[train][evaluate][task]") {
  const OneThread quick;
  CHECK(!evaluate(rough_decoder<float>(kSmallModel, 1), TextSource(walk(100, 10), 8), 2, 2)
             .accuracy.has_value());
}

TEST_CASE("a small model learns to copy inputs that it has not seen", "[train][task]") {
  const OneThread quick;
  const TaskSource source(make_task("copy", 3));
  ModelConfig config{.vocab = source.tokenizer().vocab(), .layers = 2, .heads = 4, .width = 64};
  config.context = source.task().longest() - 1;
  Rng rng(1);
  Decoder<float> model(config, rng);
  Trainer<float> trainer(model, {.batch = 32, .steps = 300, .lr = 3e-3, .warmup = 20}, source, 1);
  CHECK(*evaluate(model, source, 32, 8).accuracy < 0.01);
  while (!trainer.done()) trainer.step();
  CHECK(*evaluate(model, source, 32, 8).accuracy > 0.95);
}

TEST_CASE("a task's run stops and resumes to the bit", "[train][task][resume]") {
  const OneThread quick;
  const TaskSource source(make_task("induction", 12));
  ModelConfig config{.vocab = source.tokenizer().vocab(), .layers = 1, .heads = 2, .width = 16};
  config.context = source.task().longest() - 1;
  const auto fresh = [&] {
    Rng rng(1);
    return Decoder<float>(config, rng);
  };
  Decoder<float> straight = fresh(), stopped = fresh(), resumed = fresh();
  const TrainOptions options{.batch = 4, .steps = 10};
  Trainer<float> all(straight, options, source, 5), half(stopped, options, source, 5),
      rest(resumed, options, source, 5);
  for (int i = 0; i < 10; ++i) all.step();
  for (int i = 0; i < 5; ++i) half.step();
  const TemporaryFolder folder;
  half.save(folder / "state");
  rest.load(folder / "state");
  for (int i = 0; i < 5; ++i) rest.step();
  CHECK(same_bits(weights_of(straight), weights_of(resumed)));
}

TEST_CASE("a tokenizer that does not know a task's characters is refused",
          "[train][task][errors]") {
  const Tokenizer known = Tokenizer::from_tokens(TokenizerKind::character, {"\t", "\n", "a"});
  CHECK_THROWS_WITH(TaskSource(make_task("copy", 3), known),
                    "text: character 'b' (U+0062) at index 0 is not one of the 3 characters of the "
                    "training text");
}
