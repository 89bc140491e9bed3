// Decoding with a key/value cache against the full forward pass.
#include "headwise/core/memory.hpp"
#include "headwise/models/sample.hpp"
#include "support/catch.hpp"
#include "support/models.hpp"
#include "support/process.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

const ModelConfig kGenerating{.vocab = 30, .layers = 3, .heads = 2, .width = 24, .context = 20};

/// Logits of the token after a text, by the full forward pass over its last `context` tokens.
template <Real T>
Tensor<T> full_logits(const Decoder<T>& model, const std::vector<Id>& text) {
  const auto seen = std::min<std::ptrdiff_t>(model.config.context, std::ssize(text));
  const Tensor<T> all = infer(model, Ids({1, seen}, {text.end() - seen, text.end()}));
  return Tensor<T>({model.config.vocab},
                   all.values().last(static_cast<std::size_t>(model.config.vocab)));
}

template <Real T>
Tensor<T> logits_of(const Generator<T>& texts, Index i) {
  return Tensor<T>({static_cast<Index>(texts.logits(i).size())}, texts.logits(i));
}

std::vector<std::vector<Id>> unequal_prompts() {
  std::vector<std::vector<Id>> prompts;
  for (const Index length : {1, 5, 19, 2, 20, 27, 8}) {
    const Ids ids = random_ids({length}, kGenerating.vocab, static_cast<std::uint64_t>(length));
    prompts.push_back(ids.values);
  }
  return prompts;
}

std::vector<Rng> streams(std::size_t n) {
  std::vector<Rng> rngs;
  for (std::size_t i = 0; i < n; ++i) rngs.emplace_back(7, i);
  return rngs;
}

}  // namespace

TEMPLATE_TEST_CASE("cached logits equal the full forward's, within and beyond the context",
                   "[models][cache]", float, double) {
  const OneThread quick;
  ModelConfig config = kGenerating;
  config.attention_only = GENERATE(false, true);
  config.tie = GENERATE(true, false);
  const auto model = rough_decoder<TestType>(config, 1);
  std::vector<std::vector<Id>> texts = unequal_prompts();
  Generator<TestType> generator(model, texts, 30);
  for (Index step = 0; step < 30; ++step) {
    std::vector<Id> next;
    for (Index i = 0; i < std::ssize(texts); ++i) {
      CAPTURE(step, i, texts[static_cast<std::size_t>(i)].size());
      std::vector<Id>& text = texts[static_cast<std::size_t>(i)];
      CHECK(relative_gap(logits_of(generator, i), full_logits(model, text)) <
            (std::same_as<TestType, float> ? 1e-5 : 1e-12));
      next.push_back(static_cast<Id>((7 * step + 3 * i) % kGenerating.vocab));
      text.push_back(next.back());
    }
    generator.add(next);
  }
}

TEST_CASE("a text's logits have the same bits whatever is decoded beside it", "[models][cache]") {
  const auto model = rough_decoder<float>(kGenerating, 1);
  const std::vector<std::vector<Id>> prompts = unequal_prompts();
  for (const int threads : {1, 2, 4}) {
    const Threads guard(threads);
    Generator<float> together(model, prompts, 30);
    std::vector<Generator<float>> alone;
    for (const auto& prompt : prompts)
      alone.emplace_back(model, std::vector<std::vector<Id>>(1, prompt), 30);
    for (Index step = 0; step < 30; ++step) {
      std::vector<Id> next;
      for (Index i = 0; i < std::ssize(prompts); ++i) {
        CAPTURE(threads, step, i);
        Generator<float>& one = alone[static_cast<std::size_t>(i)];
        CHECK(same_bits(logits_of(together, i), logits_of(one, 0)));
        next.push_back(static_cast<Id>((5 * step + i) % kGenerating.vocab));
        one.add({next.back()});
      }
      together.add(next);
    }
  }
}

TEST_CASE("eleven samples are those of eleven runs of one", "[models][cache][sample]") {
  const OneThread quick;
  const auto model = rough_decoder<float>(kGenerating, 1, 0.5);
  std::vector<std::vector<Id>> prompts(11, {3, 1});
  prompts[4] = {2, 2, 9, 9};
  std::vector<Rng> rngs = streams(11), again = streams(11);
  const auto together = sample(model, prompts, 40, {}, std::span(rngs));
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    CAPTURE(i);
    CHECK(together[i] == sample(model, prompts[i], 40, {}, again[i]));
    CHECK(rngs[i].position() == again[i].position());
  }
  CHECK(together[0] != together[1]);
}

TEST_CASE("a text that ends does not end the others", "[models][cache][sample]") {
  const OneThread quick;
  const auto model = rough_decoder<float>(kGenerating, 1, 0.5);
  const std::vector<std::vector<Id>> prompts(3, {3});
  std::vector<Rng> rngs = streams(3), again = streams(3);
  std::vector<Index> heard(3);
  const auto texts = sample(model, prompts, 12, {}, std::span(rngs), [&](Index i, Id) {
    return ++heard[static_cast<std::size_t>(i)] < 4 * (i + 1);
  });
  const auto whole = sample(model, prompts, 12, {}, std::span(again));
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(texts[i].size() == 4 * (i + 1));
    CHECK(std::equal(texts[i].begin(), texts[i].end(), whole[i].begin()));
  }
}

TEST_CASE("a token takes no buffer from the system", "[models][cache][memory]") {
  if (kSanitized) return;
  const auto model = rough_decoder<float>(
      {.vocab = 5000, .layers = 2, .heads = 4, .width = 256, .context = 300}, 1, 0.02);
  for (const std::size_t n : {std::size_t{1}, std::size_t{8}}) {
    Generator<float> texts(model, std::vector<std::vector<Id>>(n, {1, 2, 3}), 280);
    std::vector<Rng> rngs = streams(n);
    std::vector<Drawer> drawers(n, Drawer(Drawing{}));
    std::vector<Id> next(n);
    const auto step = [&] {
      for (std::size_t i = 0; i < n; ++i)
        next[i] = drawers[i].draw(texts.logits(static_cast<Index>(i)), rngs[i]);
      texts.add(next);
    };
    for (int i = 0; i < 10; ++i) step();
    const std::size_t before = memory_stats().allocations;
    for (int i = 0; i < 250; ++i) step();
    CHECK(memory_stats().allocations == before);
  }
  CHECK(memory_stats().allocations > 0);
}

TEST_CASE("texts that cannot be decoded side by side are refused", "[models][cache][errors]") {
  const OneThread quick;
  const auto model = rough_decoder<float>(kGenerating, 1);
  CHECK_THROWS_WITH(Generator<float>(model, {}, 3), "sample: there is no prompt");
  CHECK_THROWS_WITH(Generator<float>(model, {{1}, {}}, 3), "sample: the prompt is empty");
  CHECK_THROWS_WITH(Generator<float>(model, std::vector<std::vector<Id>>(9, {1}), 3),
                    "sample: 9 texts side by side, 8 at most");
  Generator<float> two(model, {{1}, {2}}, 3);
  CHECK_THROWS_WITH(two.add({1}), "sample: 1 tokens for 2 texts");
  for (const Id bad : {-1, 30, 2000000000})
    CHECK_THROWS_WITH(two.add({1, bad}),
                      fmt::format("sample: id {} of text 1 is not in [0, 29]", bad));
  two.add({1, 2});  // as if nothing had been
  CHECK(relative_gap(logits_of(two, 1), full_logits(model, {2, 2})) < 1e-5);
  Rng rng(1);
  CHECK(sample(model, {1}, std::numeric_limits<Index>::max(), {}, rng, [](Id) {
          return false;
        }).size() == 1);
}
