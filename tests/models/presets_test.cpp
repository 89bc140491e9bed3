// Models of known sizes are of those sizes.
#include "headwise/models/presets.hpp"

#include "support/catch.hpp"
#include "support/process.hpp"

using namespace headwise;

namespace {

const Preset& preset(std::string_view name) {
  return *std::find_if(presets().begin(), presets().end(),
                       [&](const Preset& p) { return p.name == name; });
}

Index parameters(const ModelConfig& config) {
  Rng rng(1);
  Decoder<float> model(config, rng);
  return parameter_count(model);
}

}  // namespace

TEST_CASE("the presets are these, in this order", "[models][presets]") {
  std::vector<std::string_view> names;
  for (const Preset& p : presets()) {
    names.push_back(p.name);
    CHECK_NOTHROW(p.model.validate());
  }
  CHECK(names == std::vector<std::string_view>{"toy", "nano", "char", "long", "gpt2"});
}

TEST_CASE("each preset has the number of parameters it is known for", "[models][presets]") {
  CHECK(parameters(preset("toy").model) == 108352);
  CHECK(parameters(preset("nano").model) == 809856);
  CHECK(parameters(preset("char").model) == 10770816);
  CHECK(parameters(preset("long").model) == 6961152);
  if (test::kSanitized) return;  // half a gigabyte
  ModelConfig gpt2 = preset("gpt2").model;
  gpt2.context = 64;
  CHECK(parameters(gpt2) == 123702528);
}

TEST_CASE("the operations of a training step are those of the formula", "[models][presets]") {
  // toy: 1024 tokens; 6 x 108352 = 650112 and 12 x 2 x 64 x 64 = 98304 a token.
  CHECK(training_flops(preset("toy").model, 108352, 1024, false) == 1024 * (650112. + 98304));
  CHECK(training_flops(preset("toy").model, 108352, 1024, true) == 1024 * (650112. + 49920));
  // toy's table of 64 positions is only looked up.
  CHECK(looked_up(preset("toy").model) == 64 * 64);
  CHECK(looked_up({.vocab = 10, .width = 4, .context = 3, .tie = false}) == 4 * (3 + 10));
  // One token more of a context is half a key more for each query on average.
  CHECK(training_flops({.layers = 1, .width = 1, .context = 1}, 0, 1, true) == 12);
  CHECK(training_flops({.layers = 1, .width = 1, .context = 2}, 0, 1, true) == 18);
}
