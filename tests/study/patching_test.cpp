#include "headwise/study/patching.hpp"

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/study.hpp"

using namespace headwise;
using namespace headwise::study;

namespace {

const ModelConfig kPatched{.vocab = 11, .layers = 3, .heads = 2, .width = 8, .context = 60};
const std::vector<Id> kClean = {3, 1, 4, 1, 5, 9}, kCorrupt = {3, 1, 7, 2, 5, 9};
constexpr Answers kAnswers{.answer = 2, .wrong = 6};

/// logit(2) - logit(6) after the last token, with edit(name, x) in the place of each activation.
template <Real T, class F>
double difference(const Decoder<T>& model, const std::vector<Id>& prompt, F edit) {
  test::Editing<T, F> probe(edit);
  const Tensor<T> logits =
      test::infer<T>(model, Ids({1, static_cast<Index>(prompt.size())}, prompt), &probe);
  const T* last = logits.data() + logits.size() - kPatched.vocab;
  return static_cast<double>(last[2]) - static_cast<double>(last[6]);
}

/// The same for the corrupt prompt, with the clean z of some heads at some positions.
template <Real T, class F>
double patched(const Decoder<T>& model, const ModelConfig& config, const HeadSet& heads, F at) {
  test::Recorder<T> clean;
  test::infer<T>(model, Ids({1, static_cast<Index>(kClean.size())}, kClean), &clean);
  return difference(model, kCorrupt, [&](const std::string& name, const Tensor<T>& x) {
    const Tensor<T> corrupt = x;
    return test::put(name, x, heads, config, [&](Index, Index t, Index j) {
      return (at(t) ? clean.seen.at(name) : corrupt).data()[t * config.width + j];
    });
  });
}

template <Real T>
Tensor<T> as_it_is(const std::string&, const Tensor<T>& x) {
  return x;
}

}  // namespace

TEST_CASE("a patch is a whole run of the corrupt prompt with a clean head", "[study]") {
  ModelConfig config = kPatched;
  config.attention_only = GENERATE(false, true);
  const Decoder<double> model = test::rough_decoder<double>(config, 3);
  const Patching got = patch_heads(model, kClean, kCorrupt, kAnswers);
  const double clean = difference(model, kClean, as_it_is<double>),
               corrupt = difference(model, kCorrupt, as_it_is<double>);
  CHECK(got.answer == 2);
  CHECK(got.wrong == 6);
  CHECK(got.clean_difference == clean);
  CHECK(got.corrupt_difference == corrupt);
  REQUIRE(got.effects.size() == 6);
  for (const HeadId h : heads_of(config)) {
    const std::vector<double>& effects =
        got.effects[static_cast<std::size_t>(h.layer * 2 + h.head)];
    REQUIRE(effects.size() == 6);
    for (std::size_t p = 0; p < 6; ++p) {
      const double m =
          patched(model, config, {h}, [&](Index t) { return t == static_cast<Index>(p); });
      CHECK(effects[p] == Approx((m - corrupt) / (clean - corrupt)).margin(1e-12));
    }
    // Before the prompts part, clean and corrupt z are the same: no patch at all.
    CHECK(std::fabs(effects[0]) < 1e-12);
    CHECK(std::fabs(effects[1]) < 1e-12);
  }
  CHECK(std::fabs(got.effects[0][3]) > 1e-3);  // a patch that does something
}

TEST_CASE("a patch of everything that reaches the answer has effect 1", "[study]") {
  ModelConfig config = kPatched;
  config.layers = config.heads = 1;
  config.attention_only = true;
  // The last tokens are equal, so the one head's result there is all that differs.
  const Patching one =
      patch_heads(test::rough_decoder<double>(config, 3), kClean, kCorrupt, kAnswers);
  CHECK(one.effects[0][5] == Approx(1).epsilon(1e-12));
  for (std::size_t p = 0; p < 5; ++p) CHECK(std::fabs(one.effects[0][p]) < 1e-12);

  // Of several layers of heads, all of them there.
  const Decoder<double> model = test::rough_decoder<double>(kPatched, 3);
  const Patching got = patch_heads(model, kClean, kCorrupt, kAnswers);
  const double all = patched(model, kPatched, heads_of(kPatched), [](Index t) { return t == 5; });
  CHECK((all - got.corrupt_difference) / (got.clean_difference - got.corrupt_difference) ==
        Approx(1).epsilon(1e-12));
}

TEST_CASE("the answers are the likeliest next tokens unless they are given", "[study]") {
  const Decoder<double> model = test::rough_decoder<double>(kPatched, 3, 1);
  const auto next = [&](const std::vector<Id>& prompt) {
    const Tensor<double> logits = test::infer<double>(model, Ids({1, 6}, prompt));
    const auto last = logits.values().last(11);
    return static_cast<Id>(std::max_element(last.begin(), last.end()) - last.begin());
  };
  const std::vector<Id> other = {8, 2, 7, 2, 0, 10};
  REQUIRE(next(kClean) != next(other));
  const Patching got = patch_heads(model, kClean, other);
  CHECK(got.answer == next(kClean));
  CHECK(got.wrong == next(other));
  CHECK(got.clean_difference > 0);
  CHECK(got.corrupt_difference < 0);
}

TEST_CASE("patching knows neither threads nor, but for rounding, the precision", "[study]") {
  const Decoder<float> model = test::rough_decoder<float>(kPatched, 3);
  const std::vector<std::vector<double>> effects =
      patch_heads(model, kClean, kCorrupt, kAnswers).effects;
  for (const int count : {1, 2, 4}) {
    const test::Threads threads(count);
    CHECK(patch_heads(model, kClean, kCorrupt, kAnswers).effects == effects);
  }
  const auto exact =
      patch_heads(test::rough_decoder<double>(kPatched, 3), kClean, kCorrupt, kAnswers).effects;
  for (std::size_t h = 0; h < effects.size(); ++h)
    for (std::size_t p = 0; p < effects[h].size(); ++p)
      CHECK(effects[h][p] == Approx(exact[h][p]).margin(1e-4));
}

TEST_CASE("a long prompt is patched in parts", "[study]") {
  ModelConfig config = kPatched;
  config.layers = 1;
  const Decoder<double> model = test::rough_decoder<double>(config, 3);
  std::vector<Id> clean(60, 3), corrupt(60, 3);  // 60 x 60 tokens are more than one part
  clean[40] = 5;
  const Patching got = patch_heads(model, clean, corrupt, kAnswers);
  const auto z_of = [&](const std::vector<Id>& prompt) {
    test::Recorder<double> seen;
    test::infer<double>(model, Ids({1, 60}, prompt), &seen);
    return seen.seen.at("blocks.0.attn.z");
  };
  const Tensor<double> clean_z = z_of(clean);
  for (std::size_t h = 0; h < 2; ++h) {
    const double m =
        difference(model, corrupt, [&](const std::string& name, const Tensor<double>& x) {
          const Tensor<double> before = x;
          return test::put(name, x, {{0, static_cast<Index>(h)}}, config,
                           [&](Index, Index t, Index j) {
                             return (t == 59 ? clean_z : before).data()[t * 8 + j];
                           });
        });
    CHECK(got.effects[h][59] ==
          Approx((m - got.corrupt_difference) / (got.clean_difference - got.corrupt_difference)));
    for (std::size_t p = 0; p < 59; ++p) CHECK(std::fabs(got.effects[h][p]) < 1e-10);
  }
}

TEST_CASE("a difference that is nothing but rounding is no scale", "[study]") {
  Decoder<float> model = test::rough_decoder<float>(kPatched, 3);
  float* tokens = model.tok.weight.value.data();
  for (Index j = 0; j < 8; ++j) tokens[7 * 8 + j] = tokens[4 * 8 + j] * (1 + 3e-7F);
  const std::vector<Id> clean = {3, 1, 4, 9}, corrupt = {3, 1, 7, 9};
  CHECK(difference(model, clean, as_it_is<float>) != difference(model, corrupt, as_it_is<float>));
  CHECK_THROWS_AS(patch_heads(model, clean, corrupt, kAnswers), UsageError);
}

TEST_CASE("prompts that cannot be patched are refused in the user's words", "[study]") {
  const Decoder<float> model = test::rough_decoder<float>(kPatched, 3);
  const auto message = [&](const std::vector<Id>& clean, const std::vector<Id>& corrupt,
                           const Answers& answers = {}) {
    return test::message_of<UsageError>(
        [&] { return patch_heads(model, clean, corrupt, answers); });
  };
  CHECK(message({}, {}) == "clean: the prompt has no tokens");
  CHECK(message({1, 2}, {1, 2, 3}) ==
        "corrupt: 3 tokens, but clean has 2; patching takes a position of one prompt to the "
        "same position of the other");
  CHECK(message(std::vector<Id>(61), std::vector<Id>(61)) ==
        "clean: 61 tokens do not fit the model's context of 60");
  CHECK(message(kClean, kCorrupt, {.answer = 4, .wrong = 4}) ==
        "clean: the answer to it and to corrupt is token 4; patching needs prompts with different "
        "answers");
  CHECK_THAT(message(kClean, kClean), Catch::Contains("the answer to it and to corrupt is token"));
  CHECK_THAT(message(kClean, kClean, kAnswers),
             Catch::Contains("clean: the logits of tokens 2 and 6 differ by "));
  CHECK_THROWS_AS(patch_heads(model, kClean, kCorrupt, {.answer = 11}), ShapeError);
}
