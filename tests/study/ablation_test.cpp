#include "headwise/study/ablation.hpp"

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/study.hpp"

using namespace headwise;
using namespace headwise::study;

namespace {

const ModelConfig kConfig{.vocab = 11, .layers = 3, .heads = 2, .width = 8, .context = 10};

/// Sets that begin in each layer, with heads of one and of several layers.
const std::vector<HeadSet> kSets = {{{0, 0}}, {{0, 1}},         {{1, 0}},
                                    {{1, 1}}, {{2, 0}},         {{2, 1}},
                                    {},       {{2, 1}, {1, 0}}, {{0, 0}, {0, 1}, {2, 0}}};

std::vector<double> rises(const Decoder<float>& model, const std::vector<Batch>& batches,
                          Instead instead, Patterns patterns = Patterns::free) {
  std::vector<Ablation> ablations;
  for (const HeadSet& set : kSets) ablations.push_back({set, instead, patterns});
  return ablate(model, batches, ablations).rises;
}

/// The rises of kSets by whole forward passes: edit(set, name, x).
template <class F>
std::vector<double> twins(const Decoder<float>& model, const Batch& batch, F edit) {
  std::vector<double> all;
  for (const HeadSet& set : kSets)
    all.push_back(test::rise_with(
        model, batch,
        [&](const std::string& name, const Tensor<float>& x) { return edit(set, name, x); }));
  return all;
}

test::Tensors<float> activations(const Decoder<float>& model, const Ids& ids) {
  test::Recorder<float> seen;
  test::infer<float>(model, ids, &seen);
  return seen.seen;
}

}  // namespace

TEST_CASE("a head that turns every stream around is worth what that costs", "[study]") {
  const Decoder<double> model = test::pushing_decoder<double>(2, 0);
  const double s = -test::kNormed;  // with the head; without it, -s
  const Ablated got = ablate(model, {test::all_ones(2)},
                             {{{{0, 0}}},
                              {{{0, 1}}},
                              {{{0, 0}, {0, 1}}},
                              {{{0, 0}}, Instead::mean},
                              {{{0, 0}}, Instead::resample},
                              {{{0, 0}}, Instead::zero, Patterns::frozen}});
  CHECK(got.loss == Approx(std::log1p(std::exp(2 * s))).epsilon(1e-12));
  CHECK(got.tokens == 6);
  CHECK(got.rises[0] == Approx(-2 * s).epsilon(1e-12));  // log(1 + e^x) - log(1 + e^-x) = x
  CHECK(got.rises[1] == 0);                              // adds nothing
  CHECK(got.rises[2] == Approx(-2 * s).epsilon(1e-12));
  CHECK(std::fabs(got.rises[3]) < 1e-15);  // it writes the same everywhere
  CHECK(got.rises[4] == 0);
  CHECK(got.rises[5] == got.rises[0]);
}

TEST_CASE("a rise's standard error is that of a ratio", "[study]") {
  // d = 3, 1, 5 over n = 1, 2, 3 positions: r = 9/6, off by 1.5, -2, 0.5; sqrt(3/2 6.5) / 6.
  CHECK(standard_error({3, 1, 5}, {1, 2, 3}) == Approx(std::sqrt(9.75) / 6).epsilon(1e-15));
  // Of one length it is that of a mean: means 1, 2, 6 of variance 7; sqrt(7 / 3).
  CHECK(standard_error({2, 4, 12}, {2, 2, 2}) == Approx(std::sqrt(7.0 / 3)).epsilon(1e-15));
  CHECK(standard_error({2, 4, 0, 12}, {2, 2, 0, 2}) == standard_error({2, 4, 12}, {2, 2, 2}));
  CHECK(standard_error({1, 2}, {1, 2}) == 0);
  CHECK(std::isnan(standard_error({3}, {1})));
  CHECK(std::isnan(standard_error({3, 0}, {1, 0})));
}

TEST_CASE("an ablation tells what each sequence lost", "[study]") {
  const Decoder<double> model = test::pushing_decoder<double>(2, 0);
  Batch batch = test::all_ones(3);  // without head 0 a one costs 2 nats more, a zero 2 less
  batch.targets.values = {1, 1, 1, 1, 0, 0, kIgnore, 1, kIgnore};
  const double s = 2 * test::kNormed;
  const std::vector<Batch> parts = {test::sequences(batch, 0, 1), test::sequences(batch, 1, 3)};
  for (const std::vector<Batch>& batches : {std::vector<Batch>{batch}, parts}) {
    const Ablated got = ablate(model, batches, {{{{0, 0}}}, {{}}});
    CHECK(got.counts == std::vector<Index>{3, 3, 1});
    for (std::size_t b = 0; b < 3; ++b)
      CHECK(got.by_sequence[0][b] == Approx(std::vector{3 * s, -s, s}[b]).epsilon(1e-9));
    CHECK(got.rises[0] == Approx(3 * s / 7).epsilon(1e-9));
    // r = 3/7; off by 12/7, -16/7 and 4/7.
    CHECK(got.errors[0] == Approx(s * std::sqrt(1.5 * 416) / 49).epsilon(1e-9));
    CHECK(got.errors[1] == 0);
  }
}

TEST_CASE("an ablation has the bits of a whole forward pass with the columns replaced", "[study]") {
  ModelConfig config = kConfig;
  config.attention_only = GENERATE(false, true);
  config.bias = config.tie = !config.attention_only;
  const Decoder<float> model = test::rough_decoder<float>(config, 3);
  const Batch batch = test::random_sequences(2, config, 5);
  const test::Tensors<float> clean = activations(model, batch.inputs);
  const Index rows = batch.inputs.shape.size(), width = config.width;

  CHECK(ablate(model, {batch}, {}).loss ==
        Approx(model.loss({}, batch.inputs, batch.targets).item()));
  CHECK(rises(model, {batch}, Instead::zero) ==
        twins(model, batch, [&](const HeadSet& set, const std::string& name, auto x) {
          return test::put(name, x, set, config, [](Index, Index, Index) { return 0.0F; });
        }));
  CHECK(rises(model, {batch}, Instead::resample) ==  // of two sequences, the other
        twins(model, batch, [&](const HeadSet& set, const std::string& name, auto x) {
          return test::put(name, x, set, config, [&](Index b, Index t, Index j) {
            return clean.at(name).data()[((1 - b) * config.context + t) * width + j];
          });
        }));
  CHECK(rises(model, {batch}, Instead::mean) ==
        twins(model, batch, [&](const HeadSet& set, const std::string& name, auto x) {
          return test::put(name, x, set, config, [&](Index, Index, Index j) {
            double total = 0;
            for (Index r = 0; r < rows; ++r)
              total += static_cast<double>(clean.at(name).data()[r * width + j]);
            return static_cast<float>(total / static_cast<double>(rows));
          });
        }));
}

TEST_CASE("frozen patterns are those of the unchanged model", "[study]") {
  const Decoder<float> model = test::rough_decoder<float>(kConfig, 3);
  const Batch batch = test::random_sequences(2, kConfig, 5);
  const test::Tensors<float> clean = activations(model, batch.inputs);
  const std::vector<double> free = rises(model, {batch}, Instead::zero),
                            frozen = rises(model, {batch}, Instead::zero, Patterns::frozen);
  CHECK(frozen == twins(model, batch, [&](const HeadSet& set, const std::string& name, auto x) {
          if (name.ends_with("pattern")) return clean.at(name);
          return test::put(name, x, set, kConfig, [](Index, Index, Index) { return 0.0F; });
        }));
  for (std::size_t i = 0; i < kSets.size(); ++i) {
    const bool nothing_behind = kSets[i].empty() || kSets[i] == HeadSet{kSets[i][0]};
    if (nothing_behind && (kSets[i].empty() || kSets[i][0].layer == 2))
      CHECK(frozen[i] == free[i]);
    else
      CHECK(frozen[i] != free[i]);
  }
}

TEST_CASE("padding has no part in the mean", "[study]") {
  const Decoder<double> model = test::rough_decoder<double>(kConfig, 3);
  Batch batch = test::random_sequences(2, kConfig, 5);
  const auto mean = [&] { return ablate(model, {batch}, {{{{1, 0}}, Instead::mean}}).rises[0]; };
  const double whole = mean();
  for (std::size_t i = 7; i < 10; ++i) batch.targets.values[i] = kIgnore;  // of the first sequence
  const double padded = mean();
  for (std::size_t i = 7; i < 10; ++i) batch.inputs.values[i] = (batch.inputs.values[i] + 1) % 11;
  CHECK(mean() == padded);
  CHECK(padded != whole);
}

TEST_CASE("resampling goes once around all sequences", "[study]") {
  const Decoder<float> model = test::rough_decoder<float>(kConfig, 3);
  const Batch batch = test::random_sequences(3, kConfig, 5);
  const test::Tensors<float> clean = activations(model, batch.inputs);
  const auto twin = [&](Index step) {
    return test::rise_with(model, batch, [&](const std::string& name, const Tensor<float>& x) {
      return test::put(name, x, {{1, 0}}, kConfig, [&](Index b, Index t, Index j) {
        return clean.at(name).data()[((b + step) % 3 * kConfig.context + t) * kConfig.width + j];
      });
    });
  };
  const std::set<double> both = {twin(1), twin(2)};
  REQUIRE(both.size() == 2);
  std::set<double> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    seen.insert(ablate(model, {batch}, {{{{1, 0}}, Instead::resample}}, seed).rises[0]);
  CHECK(seen == both);
}

TEST_CASE("no figure depends on threads, on the other ablations or on batches", "[study]") {
  const Decoder<float> model = test::rough_decoder<float>(kConfig, 3);
  const Batch batch = test::random_sequences(4, kConfig, 5);
  std::vector<Ablation> ablations;
  for (const Instead instead : {Instead::zero, Instead::mean, Instead::resample})
    for (const HeadSet& set : kSets)
      for (const Patterns patterns : {Patterns::free, Patterns::frozen})
        ablations.push_back({set, instead, patterns});
  const auto run = [&](int count) {
    const test::Threads threads(count);
    return ablate(model, {batch}, ablations).rises;
  };
  std::vector<double> one = run(1);
  CHECK(run(2) == one);
  CHECK(run(4) == one);
  for (const std::size_t i : {0U, 17U, 30U})
    CHECK(ablate(model, {batch}, {ablations[i]}).rises == std::vector<double>{one[i]});
  std::reverse(ablations.begin(), ablations.end());
  std::reverse(one.begin(), one.end());
  CHECK(run(2) == one);

  const std::vector<Batch> parts = {test::sequences(batch, 0, 1), test::sequences(batch, 1, 4)};
  for (const Instead instead : {Instead::zero, Instead::mean}) {
    const std::vector<double> whole = rises(model, {batch}, instead),
                              parted = rises(model, parts, instead);
    for (std::size_t i = 0; i < whole.size(); ++i)
      CHECK(parted[i] == Approx(whole[i]).margin(1e-6));
  }
}

TEST_CASE("float ablations are those of double", "[study]") {
  const Decoder<float> model = test::rough_decoder<float>(kConfig, 3);
  Decoder<double> exact = test::rough_decoder<double>(kConfig, 3);
  const Batch batch = test::random_sequences(3, kConfig, 5);
  for (const Instead instead : {Instead::zero, Instead::mean, Instead::resample}) {
    const Ablation one{{{0, 1}, {1, 1}}, instead, Patterns::frozen};
    CHECK(ablate(model, {batch}, {one}).rises[0] ==
          Approx(ablate(exact, {batch}, {one}).rises[0]).epsilon(1e-4));
  }
}

TEST_CASE("an ablation that cannot be says why", "[study]") {
  const Decoder<float> model = test::rough_decoder<float>(kConfig, 3);
  const Batch one = test::random_sequences(1, kConfig, 5);
  CHECK(test::message_of<UsageError>([&] {
          return ablate(model, {one}, {{{{0, 0}}, Instead::resample}});
        }) == "ablation: resampling takes z from another sequence, but a batch has 1 sequence");
  CHECK(test::message_of<ShapeError>([&] {
          return ablate(model, {one}, {{{{3, 0}}}});
        }) == "ablation: there is no head 3.0 in 3 layers of 2 heads");
  Batch other = one;
  std::fill(other.targets.values.begin(), other.targets.values.end(), kIgnore);
  CHECK_THROWS_AS(ablate(model, {other}, {{{{0, 0}}}}), ShapeError);
  other.targets = test::sequences(test::random_sequences(2, kConfig, 5), 0, 2).targets;
  CHECK_THROWS_AS(ablate(model, {other}, {{{{0, 0}}}}), ShapeError);
}
