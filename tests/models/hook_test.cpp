// What a probe may put in the place of an activation, and which names it may ask for.
#include "headwise/study/recording.hpp"
#include "support/catch.hpp"
#include "support/models.hpp"

using namespace headwise;
using test::infer;
using test::random_ids;
using test::replacing;
using test::rough_decoder;

namespace {

const ModelConfig kHooked{.vocab = 11, .layers = 2, .heads = 4, .width = 16, .context = 8};

/// Asks for a list of names, and leaves all as it is.
struct Asking : Probe<float> {
  std::vector<std::string> list;
  mutable std::vector<std::string> shown{};

  explicit Asking(std::vector<std::string> names) : list(std::move(names)) {}
  [[nodiscard]] std::vector<std::string> names() const override { return list; }
  Var<float> at(std::string_view name, Var<float> x) override {
    shown.emplace_back(name);
    return x;
  }
};

/// The message of a pass under that probe, "" if there is none.
std::string refusal(const Decoder<float>& model, Probe<float>& probe) {
  try {
    infer(model, random_ids({3, 8}, 11, 1), &probe);
  } catch (const ShapeError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an activation is replaced by one of its shape or not at all",
          "[models][probe][errors]") {
  const test::OneThread quick;
  const auto model = rough_decoder<float>(kHooked, 1);
  test::Recorder<float> all;
  infer(model, random_ids({3, 8}, 11, 1), &all);
  CHECK(all.seen.size() == 27);
  for (const auto& [name, x] : all.seen) {
    CAPTURE(name);
    // Each of these would broadcast in an addition.
    const Shape one{std::vector<Index>(static_cast<std::size_t>(x.shape().rank()), 1)};
    for (const Shape& shape : {Shape{x.shape().last()}, Shape{}, one}) {
      auto probe = replacing<float>(
          name, [&](const Var<float>&) { return Var<float>(Tensor<float>::zeros(shape)); });
      CHECK(refusal(model, probe) ==
            fmt::format("hook: '{}' of shape {} was replaced by a tensor of shape {}", name,
                        x.shape(), shape));
    }
    auto same = replacing<float>(name, [](Var<float> y) { return y; });
    CHECK(refusal(model, same).empty());
  }
  auto nothing =
      replacing<float>("blocks.1.attn.v", [](const Var<float>&) { return Var<float>(); });
  CHECK(refusal(model, nothing) ==
        "hook: nothing was put in the place of 'blocks.1.attn.v' of shape (3,8,16)");
}

TEST_CASE("a list of names is all that is shown", "[models][probe]") {
  const test::OneThread quick;
  const auto model = rough_decoder<float>(kHooked, 1);
  Asking probe({"blocks.1.attn.z", "embed"});
  infer(model, random_ids({3, 8}, 11, 1), &probe);
  CHECK(probe.shown == std::vector<std::string>{"embed", "blocks.1.attn.z"});
}

TEST_CASE("a name that a pass does not have is an error with the nearest ones",
          "[models][probe][errors]") {
  const test::OneThread quick;
  const auto model = rough_decoder<float>(kHooked, 1);
  const Batch batch{random_ids({3, 8}, 11, 1), random_ids({3, 8}, 11, 2)};
  Asking probe({"blocks.0.attn.q", "blocks.2.attn.q"});
  CHECK_THROWS_WITH(infer(model, batch.inputs, &probe),
                    "hook: this forward pass has no 'blocks.2.attn.q'; the nearest names are "
                    "blocks.0.attn.q, blocks.1.attn.q, blocks.0.attn.k");
  CHECK_THROWS_AS(model.loss({.probe = &probe}, batch.inputs, batch.targets), UsageError);
  auto cache = model.cache(3, 8);
  CHECK_THROWS_AS(model.next({.probe = &probe}, batch.inputs, cache), UsageError);

  const auto stream = Tensor<float>::zeros({3, 8, 16});
  Asking early({"blocks.0.attn.z"});
  CHECK_THROWS_AS(model.resume({.probe = &early}, 1, stream), UsageError);
  CHECK_THROWS_AS(model.resume({.probe = &early}, 1, stream, stream), UsageError);
  CHECK_NOTHROW(model.resume({.probe = &early}, 0, stream, stream));

  study::Recording<float> recording({"blocks.1.mlp.hiden"});
  CHECK_THROWS_WITH(infer(model, batch.inputs, &recording),
                    Catch::Contains("no 'blocks.1.mlp.hiden'; the nearest names are "
                                    "blocks.1.mlp.hidden,"));
}

TEST_CASE("in a large vocabulary's loss the names are known too", "[models][probe][errors]") {
  const test::OneThread quick;
  ModelConfig config = kHooked;
  config.vocab = 4096;
  const auto model = rough_decoder<float>(config, 1);
  const Batch batch{random_ids({1, 4}, 4096, 1), random_ids({1, 4}, 4096, 2)};
  Asking good({"logits"}), wrong({"logit"});
  CHECK_NOTHROW(model.loss({.probe = &good}, batch.inputs, batch.targets));
  CHECK_THROWS_AS(model.loss({.probe = &wrong}, batch.inputs, batch.targets), UsageError);
}

TEST_CASE("a pass goes on only from a stream of the model's shape", "[models][errors]") {
  const auto model = rough_decoder<float>(kHooked, 1);
  const auto of = [](const Shape& shape) { return Var<float>(Tensor<float>::zeros(shape)); };
  CHECK_THROWS_AS(model.resume({}, 1, of({3, 16})), ShapeError);
  CHECK_THROWS_AS(model.resume({}, 1, of({3, 8, 4})), ShapeError);
  CHECK_THROWS_AS(model.resume({}, 1, of({3, 8, 16}), of({1, 8, 16})), ShapeError);
  CHECK_THROWS_AS(model.resume({}, 1, of({3, 8, 16}), of({3, 8, 16}), 8), ShapeError);
  CHECK_THROWS_AS(model.resume({}, 1, of({3, 8, 16}), of({3, 8, 16}), -1), ShapeError);
  CHECK(model.resume({}, 1, of({3, 8, 16}), of({3, 8, 16}), 6).shape() == Shape{3, 2, 11});
  Cache<float> short_cache(1, KeyValues<float>(3, 8));
  CHECK_THROWS_WITH(model.next({}, random_ids({3, 1}, 11, 1), short_cache),
                    "decoder: a cache of 1 layers for 2");
}
