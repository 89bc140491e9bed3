#include "headwise/study/importance.hpp"

#include "support/catch.hpp"
#include "support/study.hpp"

using namespace headwise;
using namespace headwise::study;

namespace {

const ModelConfig kGated{.vocab = 7, .layers = 2, .heads = 3, .width = 6, .context = 5};

/// Two batches of sequences with 4, 1, 3 and no targets.
std::vector<Batch> uneven_batches() {
  Batch first = test::random_sequences(3, kGated, 5), second = test::random_sequences(1, kGated, 9);
  for (const std::size_t i : {5U, 6U, 8U, 14U}) first.targets.values[i] = kIgnore;
  std::fill(second.targets.values.begin(), second.targets.values.end(), kIgnore);
  return {first, second};
}

Index targets_of(const Batch& batch, Index sequence) {
  return counted(test::sequences(batch, sequence, sequence + 1).targets);
}

}  // namespace

TEST_CASE("importance is the mean size of the slope at a gate on a head", "[study]") {
  const Decoder<double> model = test::rough_decoder<double>(kGated, 3);
  const std::vector<Batch> batches = uneven_batches();
  REQUIRE(targets_of(batches[0], 1) == 1);
  const std::vector<double> got = importance(model, batches);
  REQUIRE(got.size() == 6);
  for (const HeadId h : heads_of(kGated)) {
    const auto losses = [&](double gate) {
      return test::losses_with(
          model, batches[0], [&](const std::string& name, const Tensor<double>& x) {
            const Tensor<double> open = x;
            return test::put(name, x, {h}, kGated, [&](Index b, Index t, Index j) {
              return gate * open.data()[(b * kGated.context + t) * kGated.width + j];
            });
          });
    };
    const std::vector<double> above = losses(1 + 1e-5), below = losses(1 - 1e-5);
    double total = 0;
    for (Index b = 0; b < 3; ++b) {
      const auto i = static_cast<std::size_t>(b);
      total +=
          std::fabs(above[i] - below[i]) / 2e-5 / static_cast<double>(targets_of(batches[0], b));
    }
    CHECK(got[static_cast<std::size_t>(h.layer * 3 + h.head)] == Approx(total / 3).epsilon(1e-7));
  }
}

TEST_CASE("importance is the product of a head's result and its gradient", "[study]") {
  const Decoder<double> model = test::rough_decoder<double>(kGated, 3);
  const Batch batch = test::random_sequences(1, kGated, 5);
  const std::vector<double> got = importance(model, {batch});
  for (Index layer = 0; layer < 2; ++layer) {
    Tape<double> tape;
    Var<double> z;
    auto probe = test::replacing<double>(
        attention_name(layer, "z"), [&](const Var<double>& x) { return z = tape.leaf(x.value()); });
    tape.backward(model.loss({.tape = &tape, .probe = &probe}, batch.inputs, batch.targets));
    const Tensor<double> slope = tape.grad(z);
    std::vector<double> product(3);
    for (Index i = 0; i < slope.size(); ++i)
      product[static_cast<std::size_t>(i % 6 / 2)] += slope.data()[i] * z.value().data()[i];
    for (std::size_t h = 0; h < 3; ++h)
      CHECK(got[static_cast<std::size_t>(layer) * 3 + h] ==
            Approx(std::fabs(product[h])).epsilon(1e-11));
  }
}

TEST_CASE("importance leaves the model alone, and knows neither threads nor batches", "[study]") {
  const Decoder<float> model = test::rough_decoder<float>(kGated, 3);
  const std::vector<Batch> batches = uneven_batches();
  const std::vector<double> got = importance(model, batches);
  for (const int count : {1, 2, 4}) {
    const test::Threads threads(count);
    CHECK(importance(model, batches) == got);
  }
  CHECK(model.tok.weight.grad.empty());
  CHECK(model.tok.weight.trainable);
  const std::vector<double> exact = importance(
      test::rough_decoder<double>(kGated, 3),
      {test::sequences(batches[0], 0, 1), test::sequences(batches[0], 1, 3), batches[1]});
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(exact[i]).epsilon(1e-4));
  CHECK_THROWS_AS(importance(model, {batches[1]}), ShapeError);
}

TEST_CASE("importances are normalized within a layer", "[study]") {
  const ModelConfig config{.vocab = 2, .layers = 2, .heads = 2, .width = 2, .context = 2};
  CHECK(normalized_by_layer({3, 4, 0, 0}, config) == std::vector<double>{0.6, 0.8, 0, 0});
  CHECK_THROWS_AS(normalized_by_layer({3, 4, 0}, config), ShapeError);
}
