#include "headwise/study/effects.hpp"

#include "support/catch.hpp"
#include "support/study.hpp"

using namespace headwise;
using namespace headwise::study;

namespace {

const HeadSet kBoth = {{0, 0}, {0, 1}};

/// What both heads of a pushing decoder are worth together.
Group both(double push_0, double push_1) {
  const Decoder<double> model = test::pushing_decoder<double>(push_0, push_1);
  const std::vector<Batch> batches = {test::all_ones(2)};
  const Effects single = effects_of(model, batches, single_heads(model.config));
  return groups_of(model, batches, {kBoth}, single.each)[0];
}

}  // namespace

TEST_CASE("effects are the usual ablations of each set", "[study]") {
  const ModelConfig config{.vocab = 11, .layers = 2, .heads = 2, .width = 8, .context = 10};
  const Decoder<float> model = test::rough_decoder<float>(config, 3);
  const Batch batch = test::random_sequences(3, config, 5);
  const HeadSet set = {{0, 1}, {1, 0}};
  const Effects got = effects_of(model, {batch}, {{{0, 0}}, set}, 7);
  const Ablated want = ablate(model, {batch},
                              {{set},
                               {set, Instead::zero, Patterns::frozen},
                               {set, Instead::mean},
                               {set, Instead::resample}},
                              7);
  CHECK(got.loss == want.loss);
  REQUIRE(got.each.size() == 2);
  const Effect& e = got.each[1];
  CHECK(std::vector{e.full, e.frozen_patterns, e.mean, e.resample} == want.rises);
  CHECK(single_heads(config) == std::vector<HeadSet>{{{0, 0}}, {{0, 1}}, {{1, 0}}, {{1, 1}}});

  const Effects lonely = effects_of(model, {batch, test::random_sequences(1, config, 6)}, {set});
  CHECK(std::isnan(lonely.each[0].resample));
  CHECK(std::isfinite(lonely.each[0].mean));
}

TEST_CASE("two heads of which each would do are redundant", "[study]") {
  const Group twins = both(2, 2);  // each turns the stream around by itself
  CHECK(twins.heads == kBoth);
  CHECK(std::fabs(twins.sum_of_single) < 1e-5);
  CHECK(twins.joint.full == Approx(2).epsilon(1e-4));
  CHECK(twins.redundant);
}

TEST_CASE("a head that does all the work, or none at all, makes no group redundant", "[study]") {
  const Group alone = both(2, 0);
  CHECK(alone.sum_of_single == Approx(2).epsilon(1e-4));
  CHECK(alone.joint.full == Approx(2).epsilon(1e-4));
  CHECK_FALSE(alone.redundant);
  // Together they turn the stream around, and either alone does not: each is worth the whole.
  const Group needed = both(0.8, 0.8);
  CHECK(needed.sum_of_single ==
        Approx(4).epsilon(1e-3));  // the norm's eps shows in so small a stream
  CHECK_FALSE(needed.redundant);
  CHECK_FALSE(both(0.1, 0.1).redundant);  // nothing happens: below the least rise
  CHECK_FALSE(both(-2, -2).redundant);    // they strengthen what is there
}

TEST_CASE("a small rise makes no group redundant", "[study]") {
  Decoder<double> model = test::pushing_decoder<double>(2, 2);
  test::set(model.head->weight, {0.004, 0, 0, 0.004});
  const Group g = groups_of(model, {test::all_ones(2)}, {kBoth}, std::vector<Effect>(2))[0];
  CHECK(g.joint.full == Approx(0.008).epsilon(1e-4));
  CHECK(g.sum_of_single == 0);
  CHECK_FALSE(g.redundant);
}

TEST_CASE("a group needs two heads, and the effects of all single ones", "[study]") {
  const Decoder<double> model = test::pushing_decoder<double>(2, 0);
  const std::vector<Batch> batches = {test::all_ones(2)};
  // Even where the single effect is said to be nothing.
  CHECK_FALSE(groups_of(model, batches, {{{0, 0}}}, std::vector<Effect>(2))[0].redundant);
  CHECK_THROWS_AS(groups_of(model, batches, {kBoth}, std::vector<Effect>(3)), ShapeError);
}
