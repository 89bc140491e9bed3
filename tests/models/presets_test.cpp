// Models of known sizes are of those sizes.
#include "headwise/models/presets.hpp"

#include "support/catch.hpp"
#include "support/process.hpp"

using namespace headwise;

namespace {

ModelConfig model(std::string_view name) { return preset("--preset", name).model; }

/// What a decoder of that size must have: C a row of a table, C^2 + C of a projection,
/// four of them a layer and eight in its MLP, 2 C of a norm.
Index by_hand(const ModelConfig& m) {
  const Index c = m.width;
  const Index attention = 4 * (c * c + c), mlp = (4 * c * c + 4 * c) + (4 * c * c + c);
  const Index layer = 2 * c + attention + (m.attention_only ? 0 : 2 * c + mlp);
  return (m.vocab + m.context) * c + m.layers * layer + 2 * c + (m.tie ? 0 : m.vocab * c);
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
  CHECK(names == std::vector<std::string_view>{"toy", "nano", "char", "long", "gpt2",
                                               "transformer-base", "bert-base", "bert-large",
                                               "induction"});
}

TEST_CASE("each preset has the number of parameters it is known for", "[models][presets]") {
  CHECK(parameters(model("toy")) == 108352);
  CHECK(parameters(model("nano")) == 809856);
  CHECK(parameters(model("char")) == 10770816);
  CHECK(parameters(model("long")) == 6961152);
  if (test::kSanitized) return;  // half a gigabyte
  ModelConfig gpt2 = model("gpt2");
  gpt2.context = 64;
  CHECK(parameters(gpt2) == 123702528);
}

TEST_CASE("the large presets have the sizes of their papers", "[models][presets]") {
  CHECK(by_hand(model("gpt2")) == 124439808);
  CHECK(by_hand(model("transformer-base")) == (37000 + 512) * 512 + 6 * 3152384 + 2 * 512);
  // BERT has 109482240 and 335141888 with its pooler (C^2 + C) and two kinds of segments (2 C).
  CHECK(by_hand(model("bert-base")) == 109482240 - (768 * 768 + 768) - 2 * 768);
  CHECK(by_hand(model("bert-large")) == 335141888 - (1024 * 1024 + 1024) - 2 * 1024);
  CHECK(by_hand(model("induction")) == 41984);
  for (const Preset& p : presets()) {  // and the formula is the decoder's
    CAPTURE(p.name);
    ModelConfig small = p.model;
    small.vocab = std::min<Index>(small.vocab, 65);
    small.layers = std::min<Index>(small.layers, 2);
    CHECK(parameters(small) == by_hand(small));
  }
}

TEST_CASE("the shapes of the presets are those of their papers", "[models][presets]") {
  const auto shape = [](const char* name) {
    const ModelConfig m = model(name);
    return std::vector<Index>{m.layers, m.heads, m.width, m.context};
  };
  using Sizes = std::vector<Index>;
  CHECK(shape("gpt2") == Sizes{12, 12, 768, 1024});
  CHECK(shape("transformer-base") == Sizes{6, 8, 512, 512});
  CHECK(shape("bert-base") == Sizes{12, 12, 768, 512});
  CHECK(shape("bert-large") == Sizes{24, 16, 1024, 512});
  CHECK(shape("induction") == Sizes{2, 4, 64, 64});
  const ModelConfig induction = model("induction");
  CHECK((induction.attention_only && !induction.tie && induction.init_std == 0.125));
}

TEST_CASE("a preset that is none is refused with the known ones", "[models][presets][errors]") {
  CHECK_THROWS_AS(preset("--preset", "gpt3"), UsageError);
  CHECK_THROWS_WITH(preset("--preset", "gpt3"),
                    "--preset: 'gpt3' is none of toy, nano, char, long, gpt2, transformer-base, "
                    "bert-base, bert-large, induction");
  CHECK_THROWS_AS(preset("--preset", ""), UsageError);
}

TEST_CASE("the operations of a training step are those of the formula", "[models][presets]") {
  // toy: 1024 tokens; 6 x 108352 = 650112 and 12 x 2 x 64 x 64 = 98304 a token.
  CHECK(training_flops(model("toy"), 108352, 1024, false) == 1024 * (650112. + 98304));
  CHECK(training_flops(model("toy"), 108352, 1024, true) == 1024 * (650112. + 49920));
  // toy's table of 64 positions is only looked up.
  CHECK(looked_up(model("toy")) == 64 * 64);
  CHECK(looked_up({.vocab = 10, .width = 4, .context = 3, .tie = false}) == 4 * (3 + 10));
  // One token more of a context is half a key more for each query on average.
  CHECK(training_flops({.layers = 1, .width = 1, .context = 1}, 0, 1, true) == 12);
  CHECK(training_flops({.layers = 1, .width = 1, .context = 2}, 0, 1, true) == 18);
}
