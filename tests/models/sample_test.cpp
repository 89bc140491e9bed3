#include "headwise/models/sample.hpp"

#include "support/catch.hpp"
#include "support/models.hpp"

using namespace headwise;
using test::infer;
using test::rough_decoder;

namespace {

const ModelConfig kSampled{.vocab = 16, .layers = 2, .heads = 2, .width = 8, .context = 8};

}  // namespace

TEST_CASE("sampling goes on beyond the context with the last tokens", "[models][sample]") {
  const test::OneThread quick;
  const auto model = rough_decoder<float>(kSampled, 1, 0.5);
  const std::vector<Id> prompts[] = {{3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  for (const std::vector<Id>& prompt : prompts) {
    Rng rng(1), again(1);
    Drawer drawer({.top_k = 12, .top_p = 0.9});
    const std::vector<Id> text = sample(model, prompt, 20, {.top_k = 12, .top_p = 0.9}, rng);
    REQUIRE(text.size() == 20);
    std::vector<Id> all = prompt;
    for (const Id next : text) {
      const auto seen = std::min<std::ptrdiff_t>(8, std::ssize(all));
      const Tensor<float> logits = infer(model, Ids({1, seen}, {all.end() - seen, all.end()}));
      CHECK(next == drawer.draw(logits.values().last(16), again));
      all.push_back(next);
    }
  }
}

TEST_CASE("the same seed samples the same text and another seed another", "[models][sample]") {
  const test::OneThread quick;
  const auto model = rough_decoder<float>(kSampled, 1);
  const auto text = [&](std::uint64_t seed) {
    Rng rng(seed);
    return sample(model, {1, 2}, 40, {}, rng);
  };
  CHECK(text(1) == text(1));
  CHECK(text(1) != text(2));
}

TEST_CASE("a listener hears every token and can stop", "[models][sample]") {
  const test::OneThread quick;
  const auto model = rough_decoder<float>(kSampled, 1);
  std::vector<Id> heard;
  Rng rng(1);
  const auto text = sample<float>(model, {1}, 40, {}, rng, [&](Id id) {
    heard.push_back(id);
    return heard.size() < 5;
  });
  CHECK(heard.size() == 5);
  CHECK(heard == text);
  CHECK(sample(model, {1}, 0, {}, rng).empty());
}

TEST_CASE("a prompt or a drawing that cannot be is refused", "[models][sample][errors]") {
  const auto model = rough_decoder<float>(kSampled, 1);
  Rng rng(1);
  CHECK_THROWS_WITH(sample(model, {1}, 3, {.temperature = -0.5}, rng),
                    "temperature: must be finite and >= 0, got -0.5");
  CHECK_THROWS_WITH(sample(model, {}, 3, {}, rng), "sample: the prompt is empty");
  for (const Id bad : {-1, 16, 2000000000})
    CHECK_THROWS_WITH(sample(model, {1, bad}, 3, {}, rng),
                      fmt::format("embedding: id {} at position 1 is not in [0, 15]", bad));
  CHECK(sample(model, {1, 15}, 3, {}, rng).size() == 3);
}
