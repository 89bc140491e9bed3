#include "headwise/study/pruning.hpp"

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/study.hpp"

using namespace headwise;
using namespace headwise::study;

namespace {

std::vector<Index> removed(const std::vector<PruningPoint>& points) {
  std::vector<Index> all;
  for (const PruningPoint& p : points) all.push_back(p.removed);
  return all;
}

}  // namespace

TEST_CASE("heads go in the order of their importance", "[study]") {
  const ModelConfig config{.vocab = 11, .layers = 2, .heads = 2, .width = 8, .context = 10};
  const Decoder<float> model = test::rough_decoder<float>(config, 3);
  const Batch batch = test::random_sequences(2, config, 5);
  const Ablated sets = ablate(model, {batch},
                              {{{{0, 1}}},
                               {{{0, 1}, {1, 0}}},
                               {{{0, 1}, {1, 0}, {0, 0}}},
                               {{{0, 1}, {1, 0}, {0, 0}, {1, 1}}}});
  const PruningCurve curve = pruning_curve(model, {batch}, {0.3, 0.1, 0.2, 0.3});
  CHECK(removed(curve.by_importance) == std::vector<Index>{0, 1, 2, 3, 4});
  CHECK(removed(curve.random) == std::vector<Index>{0, 1, 2, 3, 4});
  CHECK(curve.by_importance[0].loss == sets.loss);
  for (std::size_t i = 1; i <= 4; ++i)
    CHECK(curve.by_importance[i].loss == sets.loss + sets.rises[i - 1]);
  CHECK(curve.random[0].loss == sets.loss);
  CHECK(curve.random[4].loss == curve.by_importance[4].loss);
}

TEST_CASE("of random orders a curve tells the mean and the range", "[study]") {
  const ModelConfig config{.vocab = 11, .layers = 1, .heads = 2, .width = 8, .context = 10};
  const Decoder<float> model = test::rough_decoder<float>(config, 3);
  const Batch batch = test::random_sequences(2, config, 5);
  const Ablated one = ablate(model, {batch}, {{{{0, 0}}}, {{{0, 1}}}});
  const auto point = [&](Index orders, std::uint64_t seed) {
    return pruning_curve(model, {batch}, {0, 0}, {.orders = orders, .seed = seed}).random[1];
  };
  const auto [low, high] = std::minmax(one.rises[0], one.rises[1]);
  const PruningPoint many = point(40, 1);  // so many that both heads come first in some
  CHECK(many.removed == 1);
  CHECK(many.least == one.loss + low);
  CHECK(many.most == one.loss + high);
  const double share = (many.loss - many.least) / (high - low) * 40;  // orders with the worse first
  CHECK(share == Approx(std::round(share)).margin(1e-6));
  CHECK(share > 5);
  CHECK(share < 35);
  std::set<double> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed) seen.insert(point(1, seed).loss);
  CHECK(seen == std::set<double>{one.loss + low, one.loss + high});
}

TEST_CASE("many heads are removed several at a time", "[study]") {
  const ModelConfig config{.vocab = 5, .layers = 3, .heads = 8, .width = 8, .context = 4};
  const Decoder<float> model = test::rough_decoder<float>(config, 3);
  const Batch batch = test::random_sequences(2, config, 5);
  const std::vector<double> equal(24);
  const auto numbers = [&](Index points) {
    return removed(pruning_curve(model, {batch}, equal, {.points = points}).by_importance);
  };
  CHECK(numbers(2) == std::vector<Index>{0, 24});
  CHECK(numbers(6) == std::vector<Index>{0, 5, 10, 14, 19, 24});
  CHECK(numbers(10).size() == 10);
  CHECK(numbers(100).size() == 25);
  const auto with = [&](const PruningOptions& options, const std::vector<double>& importances) {
    return pruning_curve(model, {batch}, importances, options);
  };
  CHECK(test::message_of<UsageError>([&] { return with({.points = 1}, equal); }) ==
        "pruning: 1 points and 3 random orders, need at least 2 and 1");
  CHECK_THROWS_AS(with({.orders = 0}, equal), UsageError);
  CHECK_THROWS_AS(with({}, {1, 2}), ShapeError);
}
