#include "headwise/study/effects.hpp"

#include "support/catch.hpp"
#include "support/study.hpp"

using namespace headwise;
using namespace headwise::study;

namespace {

const HeadSet kBoth = {{0, 0}, {0, 1}};

/// A pushing decoder whose heads push each stream towards the other token: what they write hangs on
/// what they see, and its mean is nothing.
Decoder<double> turning_decoder(double push_0, double push_1) {
  Decoder<double> model = test::pushing_decoder<double>(push_0, push_1);
  test::set(model.tok.weight, {1, -1, -1, 1});
  test::set(model.blocks[0].attn.w_v.weight, {push_0 / 2, -push_0 / 2, push_1 / 2, -push_1 / 2});
  test::set(model.blocks[0].attn.w_v.bias, {0, 0});
  return model;
}

/// A sequence of zeros and one of ones; by default each token should have been the other one.
std::vector<Batch> two_kinds(const std::vector<Id>& second = {0, 0, 0}) {
  Batch batch{Ids({2, 3}, {0, 0, 0, 1, 1, 1}), Ids({2, 3}, {1, 1, 1, 0, 0, 0})};
  std::copy(second.begin(), second.end(), batch.targets.values.begin() + 3);
  return {batch};
}

/// What both heads of a turning decoder are worth together.
Group both(double push_0, double push_1) {
  const Decoder<double> model = turning_decoder(push_0, push_1);
  const std::vector<Batch> batches = two_kinds();
  const Effects single = effects_of(model, batches, single_heads(model.config));
  return groups_of(model, batches, {kBoth}, single)[0];
}

/// Single effects that are said to be nothing, of two sequences.
Effects nothing(std::size_t heads) {
  Effects e;
  e.each.resize(heads);
  e.by_sequence.assign(heads, {0, 0});
  return e;
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

  CHECK(e.full_error == want.errors[0]);
  CHECK(got.by_sequence[1] == want.by_sequence[0]);
  CHECK(got.counts == want.counts);

  const Effects zero = effects_of(model, {batch}, {{{0, 0}}, set}, 7, Ways::zero);
  CHECK(zero.each[1].full == e.full);
  CHECK(zero.each[1].frozen_patterns == e.frozen_patterns);
  CHECK(std::isnan(zero.each[1].mean));
  CHECK(std::isnan(zero.each[1].resample));

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

TEST_CASE("an excess that sequences do not agree on makes no group redundant", "[study]") {
  const Decoder<double> model = turning_decoder(2, 2);
  const auto with = [&](const std::vector<Id>& second, const Effects& singles) {
    return groups_of(model, two_kinds(second), {kBoth}, singles)[0];
  };
  const Group sure = with({0, 0, kIgnore}, nothing(2));
  CHECK(sure.excess == Approx(2).epsilon(1e-4));
  CHECK(sure.excess_error < 1e-12);
  CHECK(sure.redundant);
  // Rises of 6 and of -2, three tokens each: r = 4/6, both off by 4; sqrt(2/1 (16 + 16)) / 6.
  const Group unsure = with({0, 1, 1}, nothing(2));
  CHECK(unsure.excess == Approx(4.0 / 6).epsilon(1e-4));
  CHECK(unsure.excess_error == Approx(8.0 / 6).epsilon(1e-4));
  CHECK(unsure.joint.full_error == Approx(8.0 / 6).epsilon(1e-4));
  CHECK_FALSE(unsure.redundant);
  // Single rises are taken off first: 6 and -2 less 1.5 times as much are -3 and 1.
  Effects like = nothing(2);
  like.by_sequence[0] = {6, -2};
  CHECK(with({0, 1, 1}, like).excess_error == Approx(4.0 / 6).epsilon(1e-4));
}

TEST_CASE("one sequence makes no group redundant", "[study]") {
  const Decoder<double> model = test::pushing_decoder<double>(2, 2);
  const std::vector<Batch> one = {test::all_ones(1)};
  const Group g =
      groups_of(model, one, {kBoth}, effects_of(model, one, single_heads(model.config)))[0];
  CHECK(g.excess == Approx(2).epsilon(1e-4));
  CHECK(std::isnan(g.excess_error));
  CHECK(std::isnan(g.joint.full_error));
  CHECK_FALSE(g.redundant);
}

TEST_CASE("a constant that heads add makes them not redundant", "[study]") {
  const Decoder<double> model = test::pushing_decoder<double>(2, 2);
  const Group g = groups_of(model, {test::all_ones(2)}, {kBoth}, nothing(2))[0];
  CHECK(g.excess == Approx(2).epsilon(1e-4));
  CHECK(g.excess_error < 1e-12);
  CHECK(std::fabs(g.joint.mean) < 1e-12);
  CHECK_FALSE(g.redundant);
}

TEST_CASE("of untrained models no group is redundant", "[study]") {
  const ModelConfig config{
      .vocab = 40, .layers = 3, .heads = 4, .width = 32, .context = 48, .init_std = 0.2};
  int by_chance = 0;  // costs clearly more together, did we not know the error
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Rng rng(seed);
    const Decoder<float> model(config, rng);
    const std::vector<Batch> batches = {test::random_sequences(4, config, 10 * seed)};
    const Effects single = effects_of(model, batches, single_heads(config), 1, Ways::zero);
    const Group all = groups_of(model, batches, {heads_of(config)}, single)[0];
    if (all.excess > 0 && std::min(all.joint.full, all.joint.mean) > kRedundantRise) ++by_chance;
    CHECK_FALSE(all.redundant);
  }
  CHECK(by_chance > 0);
}

TEST_CASE("a small rise makes no group redundant", "[study]") {
  Decoder<double> model = turning_decoder(2, 2);
  test::set(model.head->weight, {0.004, 0, 0, 0.004});
  const Group g = groups_of(model, two_kinds(), {kBoth}, nothing(2))[0];
  CHECK(g.joint.full == Approx(0.008).epsilon(1e-4));
  CHECK(g.sum_of_single == 0);
  CHECK_FALSE(g.redundant);
}

TEST_CASE("a group needs two heads, and the effects of all single ones", "[study]") {
  const Decoder<double> model = turning_decoder(2, 0);
  const std::vector<Batch> batches = two_kinds();
  // Even where the single effect is said to be nothing.
  CHECK_FALSE(groups_of(model, batches, {{{0, 0}}}, nothing(2))[0].redundant);
  CHECK_THROWS_AS(groups_of(model, batches, {kBoth}, nothing(3)), ShapeError);
}
