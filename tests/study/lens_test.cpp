#include "headwise/study/lens.hpp"

#include <algorithm>
#include <cmath>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/models.hpp"

using namespace headwise;
using namespace headwise::study;

namespace {

const ModelConfig kLensed{.vocab = 11, .layers = 2, .heads = 2, .width = 8, .context = 6};

/// The probabilities (N,V) of a stream, by the model's own ops.
template <Real T>
Tensor<T> plainly(const Decoder<T>& model, const Tensor<T>& stream) {
  return softmax(linear(model.ln_f({}, Var<T>(stream)), Var<T>(model.tok.weight.value))).value();
}

}  // namespace

TEMPLATE_TEST_CASE("the logit lens reads the stream at every depth", "[study]", float, double) {
  const auto model = test::rough_decoder<TestType>(kLensed, 7);
  const Ids ids = test::random_ids({2, 6}, 11, 8);
  test::Recorder<TestType> seen;
  test::infer(model, ids, &seen);
  const std::vector<LensLayer> layers = logit_lens(model, ids, 4);
  const std::vector<std::pair<std::string, std::string>> streams = {
      {"embed", "blocks.0.resid_pre"},
      {"after 0", "blocks.1.resid_pre"},
      {"after 1", "blocks.1.resid_post"}};
  REQUIRE(layers.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(layers[i].name == streams[i].first);
    const auto expected = plainly(model, seen.seen.at(streams[i].second));
    REQUIRE(layers[i].top.size() == 12);
    for (std::size_t n = 0; n < 12; ++n) {
      const auto p = expected.values().subspan(n * 11, 11);
      REQUIRE(layers[i].top[n].size() == 4);
      for (std::size_t k = 0; k < 4; ++k) {
        const Guess& guess = layers[i].top[n][k];
        const TestType likely = p[static_cast<std::size_t>(guess.id)];
        CHECK(guess.p == Approx(likely).epsilon(1e-5));
        CHECK(std::count_if(p.begin(), p.end(), [&](TestType x) { return x > likely; }) ==
              static_cast<Index>(k));
      }
    }
  }
}

TEST_CASE("all tokens of the lens add up to 1, and equal ones come in order", "[study]") {
  Decoder<double> model = test::rough_decoder<double>(kLensed, 9);
  model.tok.weight.value = Tensor<double>::full({11, 8}, 0.5);
  for (const LensLayer& layer : logit_lens(model, Ids({1, 2}, {3, 4}), 100))
    for (const std::vector<Guess>& top : layer.top) {
      REQUIRE(top.size() == 11);
      for (std::size_t k = 0; k < 11; ++k) {
        CHECK(top[k].id == static_cast<Id>(k));
        CHECK(top[k].p == Approx(1.0 / 11).epsilon(1e-12));
      }
    }
  CHECK(test::message_of<UsageError>([&] {
          logit_lens(model, Ids({1, 1}, {3}), 0);
        }) == "logit_lens: 0 tokens are not at least 1");
}
