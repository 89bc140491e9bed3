// What --freeze names stays as it is, costs nothing, and still stays so when a run goes on.
#include "headwise/nn/freeze.hpp"

#include <cmath>

#include "headwise/core/safetensors.hpp"
#include "headwise/train/run.hpp"
#include "support/catch.hpp"
#include "support/training.hpp"

using namespace headwise;
using test::kSmallModel;
using test::kSmallTraining;
using test::same_bits;
using test::Training;
using test::weights_of;

namespace {

using Names = std::set<std::string>;

template <Real T>
Names frozen_in(Decoder<T>& model) {
  Names names;
  for_each_param(model, [&](const std::string& name, const Param<T>& p) {
    if (!p.trainable) names.insert(name);
  });
  return names;
}

/// A model without MLPs and biases, in which these patterns were frozen.
Decoder<double> frozen(std::string_view patterns) {
  ModelConfig config = kSmallModel;
  config.attention_only = true;
  config.bias = false;
  auto model = test::rough_decoder<double>(config, 1);
  freeze(model, patterns);
  return model;
}

Names frozen_by(std::string_view patterns) {
  auto model = frozen(patterns);
  return frozen_in(model);
}

TrainOptions freezing(const char* patterns) {
  TrainOptions options = kSmallTraining;
  options.freeze = patterns;
  return options;
}

}  // namespace

TEST_CASE("patterns freeze the parameters whose whole name they fit", "[train][freeze]") {
  CHECK(frozen_by("").empty());
  CHECK(frozen_by("tok.weight") == Names{"tok.weight"});
  CHECK(frozen_by("pos.*,tok.*") == Names{"pos.weight", "tok.weight"});
  CHECK(frozen_by("*.w_q.*") == Names{"blocks.0.attn.w_q.weight", "blocks.1.attn.w_q.weight"});
  CHECK(frozen_by("blocks.1.attn.w_[qk].weight,ln_f.weight") ==
        Names{"blocks.1.attn.w_q.weight", "blocks.1.attn.w_k.weight", "ln_f.weight"});
  CHECK(frozen_by("blocks.0.*").size() == 5);
}

TEST_CASE("patterns that cannot be meant are refused", "[train][freeze][errors]") {
  const std::string some =
      "; some are tok.weight, pos.weight, blocks.0.ln1.weight, "
      "blocks.0.attn.w_q.weight";
  CHECK_THROWS_AS(frozen("head.*"), UsageError);
  CHECK_THROWS_WITH(frozen("tok.*,head.*"), "freeze: 'head.*' fits no parameter" + some);
  CHECK_THROWS_WITH(frozen("tok"), "freeze: 'tok' fits no parameter" + some);
  CHECK_THROWS_WITH(frozen("tok.weight, pos.weight"),
                    "freeze: ' pos.weight' fits no parameter" + some);
  CHECK_THROWS_WITH(frozen("tok.weight,"), "freeze: '' fits no parameter" + some);
  CHECK_THROWS_WITH(frozen("*"), "freeze: '*' leaves no parameter to train");
  CHECK_THROWS_WITH(frozen("blocks.*,tok.*,pos.*,ln_f.*"),
                    "freeze: 'blocks.*,tok.*,pos.*,ln_f.*' leaves no parameter to train");
  auto model = frozen("");
  CHECK_THROWS_AS(freeze(model, "tok.weight,nothing"), UsageError);
  CHECK(frozen_in(model).empty());
  Training<double> t(kSmallModel, kSmallTraining, 1);
  CHECK_THROWS_WITH(Trainer<double>(t.model, freezing("*"), t.text, 1),
                    "freeze: '*' leaves no parameter to train");
}

TEST_CASE("a frozen parameter gets no gradient and the others get the same", "[train][freeze]") {
  const test::OneThread quick;
  const Batch batch{test::random_ids({4, 8}, 10, 1), test::random_ids({4, 8}, 10, 2)};
  auto all = frozen(""), some = frozen("*.w_v.*,pos.weight");
  const auto expected = test::run_pass(all, batch), pass = test::run_pass(some, batch);
  CHECK(pass.loss == expected.loss);
  double squares = 0;
  for_each_param(some, [&](const std::string& name, Param<double>& p) {
    CAPTURE(name);
    CHECK(pass.grads.at(name).empty() == !p.trainable);
    if (!p.trainable) return;
    CHECK(same_bits(pass.grads.at(name), expected.grads.at(name)));
    squares += squared_norm(expected.grads.at(name));
    p.grad = pass.grads.at(name);
  });
  CHECK(gradient_norm(some) == Approx(std::sqrt(squares)).epsilon(1e-14));  // what clipping sees
  CHECK(without_gradient(some).empty());
}

TEST_CASE("nothing is recorded for the backward below the lowest trained layer",
          "[train][freeze]") {
  const test::OneThread quick;
  const Batch batch{test::random_ids({4, 8}, 10, 1), test::random_ids({4, 8}, 10, 2)};
  auto all = frozen(""), top = frozen("tok.*,pos.*,blocks.*");
  const auto ops = test::run_pass(all, batch).ops;
  CHECK(std::count(ops.begin(), ops.end(), "attention") == 2);
  CHECK(test::run_pass(top, batch).ops ==
        std::vector<std::string>{"param", "layer_norm", "linear", "cross_entropy"});
}

TEMPLATE_TEST_CASE("training leaves what is frozen, and its moments, alone", "[train][freeze]",
                   float, double) {
  const test::OneThread quick;
  Training<TestType> t(kSmallModel, freezing("blocks.0.*,*.ln1.bias"), 1);
  const Names names = frozen_in(t.model);
  CHECK(names.size() == 17);
  const auto before = weights_of(t.model);
  t.run(5);
  const auto after = weights_of(t.model);
  const test::TemporaryFolder folder;
  t.trainer.save(folder / "last");
  const TensorFile file(folder / "last");
  for (const auto& [name, x] : before) {
    CAPTURE(name);
    const bool still = names.contains(name);
    CHECK(same_bits(x, after.at(name)) == still);
    CHECK(file.has("weight/" + name));
    CHECK(file.has("mean/" + name) == !still);
    CHECK(file.has("square/" + name) == !still);
    CHECK(file.metadata().contains("updates/" + name) == !still);
  }
}

TEST_CASE("a run with frozen parameters resumes to the bit from its folder", "[train][freeze]") {
  const test::OneThread quick;
  RunConfig config;
  config.model = kSmallModel;
  config.train = freezing("tok.weight,blocks.1.*");
  Training<float> straight(config.model, config.train, 1), first(config.model, config.train, 1);
  straight.run(10);
  first.run(5);
  const test::TemporaryFolder folder;
  save_run(
      Run::create(folder.path(), config, Tokenizer::learn(TokenizerKind::character, "abcdefghij")),
      first.trainer, first.model, true);
  const Run run = Run::open(folder.path());
  CHECK(run.config().train.freeze == "tok.weight,blocks.1.*");
  Training<float> second(run.config().model, run.config().train, 99);
  second.trainer.load(run.last());
  CHECK(frozen_in(second.model) == frozen_in(straight.model));
  second.run(5);
  CHECK((second.saved() == straight.saved()));
  std::vector<std::string> not_finite;
  auto best = load_model<float>(run, not_finite);
  CHECK(same_bits(weights_of(best), weights_of(first.model)));
}
