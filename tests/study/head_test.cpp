#include "headwise/study/head.hpp"

#include "headwise/study/recording.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/models.hpp"

using namespace headwise;
using namespace headwise::study;

TEST_CASE("heads are named by layer and head", "[study]") {
  const ModelConfig config{.vocab = 5, .layers = 2, .heads = 2, .width = 4, .context = 4};
  CHECK(name_of({1, 0}) == "1.0");
  CHECK(head_of("--show", "1.1", config) == HeadId{1, 1});
  CHECK(heads_of(config) == std::vector<HeadId>{{0, 0}, {0, 1}, {1, 0}, {1, 1}});
  for (const char* text : {"", "1", "1.", ".1", "a.b", "1.0.0", "1,0"})
    CHECK(test::message_of<UsageError>([&] { return head_of("--show", text, config); }) ==
          fmt::format("--show: expected LAYER.HEAD, such as 1.0, got '{}'", text));
  CHECK(test::message_of<UsageError>([&] { return head_of("--show", "2.0", config); }) ==
        "--show: there is no head 2.0; the model has 2 layers of 2 heads, from 0.0 to 1.1");
}

TEST_CASE("a forward pass goes on from any layer with the same bits", "[study]") {
  const ModelConfig config{.vocab = 9, .layers = 3, .heads = 2, .width = 8, .context = 6};
  const Decoder<float> model = test::rough_decoder<float>(config, 3);
  const Ids ids = test::random_ids({2, 6}, 9, 4);
  Recording<float> seen({"blocks.0.resid_pre", "blocks.1.resid_pre", "blocks.2.resid_pre",
                         "blocks.2.resid_post", "blocks.0.attn.z", "blocks.1.attn.z",
                         "blocks.2.attn.z"});
  const Tensor<float> whole = model({.probe = &seen}, ids).value();
  for (Index layer = 0; layer <= 3; ++layer) {
    const std::string name =
        layer < 3 ? fmt::format("blocks.{}.resid_pre", layer) : "blocks.2.resid_post";
    CHECK(test::same_bits(model.resume({}, layer, Var<float>(seen[name])).value(), whole));
  }
  for (Index layer = 0; layer < 3; ++layer) {
    const Var<float> stream(seen[fmt::format("blocks.{}.resid_pre", layer)]),
        z(seen[attention_name(layer, "z")]);
    CHECK(test::same_bits(model.resume({}, layer, stream, z).value(), whole));
  }
  CHECK_THROWS_AS(model.resume({}, 3, Var<float>(seen["blocks.0.resid_pre"]),
                               Var<float>(seen["blocks.0.attn.z"])),
                  ShapeError);
  CHECK_THROWS_AS(model.resume({}, 4, Var<float>(seen["blocks.0.resid_pre"])), ShapeError);
  CHECK_THROWS_AS(seen["final"], ShapeError);
}
