#include "headwise/models/sample.hpp"

#include <cmath>
#include <limits>

#include "support/catch.hpp"
#include "support/models.hpp"

using namespace headwise;
using test::infer;
using test::rough_decoder;

namespace {

const ModelConfig kSmall{.vocab = 16, .layers = 2, .heads = 2, .width = 8, .context = 8};

template <Real T>
Id drawn(const std::vector<T>& logits, double temperature, Rng& rng) {
  return draw(std::span<const T>(logits), temperature, rng);
}

/// How often each token comes, of n.
std::vector<double> frequencies(const std::vector<float>& logits, double temperature, int n) {
  Rng rng(1);
  std::vector<double> counts(logits.size());
  for (int i = 0; i < n; ++i) ++counts[static_cast<std::size_t>(drawn(logits, temperature, rng))];
  for (double& c : counts) c /= n;
  return counts;
}

}  // namespace

TEMPLATE_TEST_CASE("temperature 0 takes the lowest of the largest", "[models][sample]", float,
                   double) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    CHECK(drawn<TestType>({1, 3, 3, 0}, 0, rng) == 1);
    CHECK(drawn<TestType>({-2, -1}, 0, rng) == 1);
    CHECK(drawn<TestType>({5}, 0, rng) == 0);
  }
}

TEMPLATE_TEST_CASE("a tiny temperature is finite and takes one of the largest", "[models][sample]",
                   float, double) {
  for (const double temperature : {1e-8, 1e-300, 5e-324}) {
    std::set<Id> seen;
    Rng rng(1);
    for (int i = 0; i < 100; ++i) seen.insert(drawn<TestType>({1, 3, 3, 0}, temperature, rng));
    CHECK(seen == std::set<Id>{1, 2});
  }
}

TEST_CASE("a temperature that is no temperature is refused", "[models][sample][errors]") {
  Rng rng(1);
  const auto refusal = [](const char* value) {
    return fmt::format("--temperature: {} is not a finite number from 0 up", value);
  };
  constexpr double kInf = std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH(drawn<float>({1, 2}, -1, rng), refusal("-1"));
  CHECK_THROWS_WITH(drawn<float>({1, 2}, std::nan(""), rng), refusal("nan"));
  CHECK_THROWS_WITH(drawn<float>({1, 2}, kInf, rng), refusal("inf"));
  CHECK_THROWS_AS(drawn<float>({1, 2}, -kInf, rng), UsageError);
  const auto model = rough_decoder<float>(kSmall, 1);
  CHECK_THROWS_WITH(sample(model, {1}, 3, -0.5, rng), refusal("-0.5"));
}

TEST_CASE("tokens come as often as softmax says", "[models][sample]") {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> logits = {1000, 1000 + std::log(2.F), -inf, 1000 + std::log(3.F), -inf};
  const auto at_one = frequencies(logits, 1, 20000);
  const double expected[] = {1. / 6, 2. / 6, 0, 3. / 6, 0};
  for (std::size_t i = 0; i < 5; ++i) CHECK(at_one[i] == Approx(expected[i]).margin(0.014));
  CHECK(at_one[2] == 0);
  CHECK(at_one[4] == 0);
  const auto at_half = frequencies({0, std::log(2.F), std::log(3.F)}, 0.5, 20000);
  for (std::size_t i = 0; i < 3; ++i)  // 1 : 4 : 9
    CHECK(at_half[i] == Approx(static_cast<double>((i + 1) * (i + 1)) / 14).margin(0.014));
}

TEST_CASE("sampling goes on beyond the context with the last tokens", "[models][sample]") {
  const test::OneThread quick;
  const auto model = rough_decoder<float>(kSmall, 1, 0.5);
  const std::vector<Id> prompts[] = {{3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  for (const std::vector<Id>& prompt : prompts) {
    Rng rng(1), again(1);
    const std::vector<Id> text = sample(model, prompt, 20, 1, rng);
    REQUIRE(text.size() == 20);
    std::vector<Id> all = prompt;
    for (const Id next : text) {
      const auto seen = std::min<std::ptrdiff_t>(8, std::ssize(all));
      const Tensor<float> logits = infer(model, Ids({1, seen}, {all.end() - seen, all.end()}));
      CHECK(next == draw(logits.values().last(16), 1, again));
      all.push_back(next);
    }
  }
}

TEST_CASE("the same seed samples the same text and another seed another", "[models][sample]") {
  const test::OneThread quick;
  const auto model = rough_decoder<float>(kSmall, 1);
  const auto text = [&](std::uint64_t seed) {
    Rng rng(seed);
    return sample(model, {1, 2}, 40, 1, rng);
  };
  CHECK(text(1) == text(1));
  CHECK(text(1) != text(2));
}

TEST_CASE("a listener hears every token and can stop", "[models][sample]") {
  const test::OneThread quick;
  const auto model = rough_decoder<float>(kSmall, 1);
  std::vector<Id> heard;
  Rng rng(1);
  const auto text = sample<float>(model, {1}, 40, 1, rng, [&](Id id) {
    heard.push_back(id);
    return heard.size() < 5;
  });
  CHECK(heard.size() == 5);
  CHECK(heard == text);
  CHECK(sample(model, {1}, 0, 1, rng).empty());
}

TEST_CASE("a prompt that cannot be continued is refused", "[models][sample][errors]") {
  const auto model = rough_decoder<float>(kSmall, 1);
  Rng rng(1);
  CHECK_THROWS_WITH(sample(model, {}, 3, 1, rng), "sample: the prompt is empty");
  for (const Id bad : {-1, 16, 2000000000})
    CHECK_THROWS_WITH(sample(model, {1, bad}, 3, 1, rng),
                      fmt::format("embedding: id {} at position 1 is not in [0, 15]", bad));
  CHECK(sample(model, {1, 15}, 3, 1, rng).size() == 3);
}
