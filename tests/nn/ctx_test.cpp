#include "headwise/nn/ctx.hpp"

#include "support/catch.hpp"
#include "support/models.hpp"

using namespace headwise;

TEST_CASE("a context puts the path together from its parents", "[nn]") {
  const Ctx<float> top;
  const Ctx<float> block = top.in("blocks", 12), attn = block.in("attn");
  CHECK(top.path("embed") == "embed");
  CHECK(block.path("resid_pre") == "blocks.12.resid_pre");
  CHECK(attn.path("q") == "blocks.12.attn.q");
}

TEST_CASE("a child context carries tape and probe and random stream on", "[nn]") {
  Tape<float> tape;
  test::Recorder<float> probe;
  Rng rng(1);
  const Ctx<float> top{.tape = &tape, .probe = &probe, .random = &rng};
  const Ctx<float> child = top.in("blocks", 0);
  CHECK(child.tape == &tape);
  CHECK(child.probe == &probe);
  CHECK(child.random == &rng);
}

TEST_CASE("a tap shows its activation only to a probe that wants it", "[nn]") {
  const Var<float> x = Tensor<float>({2}, {1, 2});
  auto double_a = test::replacing<float>("a", [](const Var<float>& y) { return y + y; });
  const Ctx<float> ctx{.probe = &double_a};
  CHECK(test::same_bits(ctx.tap("a", x).value(), Tensor<float>({2}, {2, 4})));
  CHECK(test::same_bits(ctx.tap("b", x).value(), x.value()));
  CHECK(test::same_bits(Ctx<float>{}.tap("a", x).value(), x.value()));
}

TEST_CASE("a parameter is recorded with a tape and constant without one", "[nn]") {
  Param<float> p;
  p.value = Tensor<float>({2}, {1, 2});
  Tape<float> tape;
  CHECK(Ctx<float>{.tape = &tape}.use(p).tracked());
  CHECK_FALSE(Ctx<float>{}.use(p).tracked());
  p.trainable = false;
  CHECK_FALSE(Ctx<float>{.tape = &tape}.use(p).tracked());
}
