#include <numeric>
#include <set>

#include "headwise/core/error.hpp"
#include "headwise/data/text.hpp"
#include "support/catch.hpp"

using namespace headwise;

namespace {

/// 0, 1, ..., n-1: a token says where it stands.
std::vector<Id> places(Index n) {
  std::vector<Id> tokens(static_cast<std::size_t>(n));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

}  // namespace

TEST_CASE("a batch's targets are its inputs one token on", "[data][batch]") {
  const std::vector<Id> tokens = places(50);
  Rng rng(1);
  const Batch b = random_batch(tokens, 7, 8, rng);
  REQUIRE(b.inputs.shape == Shape{7, 8});
  REQUIRE(b.targets.shape == Shape{7, 8});
  for (std::size_t i = 0; i < b.inputs.values.size(); ++i) {
    const std::size_t first = i / 8 * 8;
    CHECK(b.inputs.values[i] == b.inputs.values[first] + static_cast<Id>(i - first));
    CHECK(b.targets.values[i] == b.inputs.values[i] + 1);
  }
}

TEST_CASE("a batch can start anywhere that leaves a whole window", "[data][batch]") {
  Rng rng(1);
  std::set<Id> starts;
  const Batch b = random_batch(places(20), 500, 8, rng);
  for (std::size_t i = 0; i < b.inputs.values.size(); i += 8) starts.insert(b.inputs.values[i]);
  CHECK(starts.size() == 12);
  CHECK(*starts.begin() == 0);
  CHECK(*starts.rbegin() == 11);
  CHECK(*std::max_element(b.targets.values.begin(), b.targets.values.end()) == 19);
}

TEST_CASE("the same seed draws the same batches and another seed others", "[data][batch]") {
  const std::vector<Id> tokens = places(1000);
  const auto two = [&](std::uint64_t seed) {
    Rng rng(seed);
    const Batch first = random_batch(tokens, 4, 8, rng), second = random_batch(tokens, 4, 8, rng);
    return std::pair(first.inputs.values, second.inputs.values);
  };
  CHECK(two(1) == two(1));
  CHECK(two(1) != two(2));
  CHECK(two(1).first != two(1).second);
}

TEST_CASE("one token more than the context is one window", "[data][batch]") {
  Rng rng(1);
  const Batch b = random_batch(places(9), 3, 8, rng);
  for (std::size_t i = 0; i < 24; i += 8) CHECK(b.inputs.values[i] == 0);
  CHECK(split(places(9), 8).train.size() == 9);
}

TEST_CASE("text shorter than a window is refused by both numbers", "[data][batch][errors]") {
  const auto refused = [](Index tokens, Index context, const std::string& message) {
    Rng rng(1);
    CHECK_THROWS_WITH(split(places(tokens), context), message);
    CHECK_THROWS_AS(split(places(tokens), context), DataError);
    CHECK_THROWS_WITH(random_batch(places(tokens), 3, context, rng), message);
    CHECK_THROWS_AS(random_batch(places(tokens), 3, context, rng), DataError);
  };
  refused(10, 64, "text: 10 tokens, need at least 65 (--context 64 and the token after)");
  refused(8, 8, "text: 8 tokens, need at least 9 (--context 8 and the token after)");
  refused(0, 8, "text: 0 tokens, need at least 9 (--context 8 and the token after)");
}

TEST_CASE("the first nine tenths train and the rest validates", "[data][split]") {
  const Split s = split(places(1005), 8);
  CHECK_FALSE(s.shared);
  CHECK(s.train == places(904));
  REQUIRE(s.valid.size() == 101);
  CHECK(s.valid[0] == 904);
  CHECK(s.valid[100] == 1004);
}

TEST_CASE("a rest too short for a window shares the whole text", "[data][split]") {
  const Split enough = split(places(81), 8), short_of_one = split(places(80), 8);
  CHECK_FALSE(enough.shared);
  CHECK(enough.train.size() == 72);
  CHECK(enough.valid.size() == 9);
  CHECK(short_of_one.shared);
  CHECK(short_of_one.train == places(80));
  CHECK(short_of_one.valid == places(80));
}
