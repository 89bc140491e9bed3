#include "headwise/nn/non_finite.hpp"

#include <limits>

#include "headwise/models/decoder.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/models.hpp"

using namespace headwise;
using test::mentions;
using test::random_ids;

namespace {

const ModelConfig kSmall{.vocab = 11, .layers = 2, .heads = 2, .width = 8, .context = 4};

/// The search in a decoder's loss.
std::optional<NonFinite> search(Decoder<float>& model, const std::optional<Rng>& random = {}) {
  const Ids ids = random_ids({2, 4}, 11, 1), targets = random_ids({2, 4}, 11, 2);
  return first_non_finite<float>(
      model, [&](const Ctx<float>& ctx) { return model.loss(ctx, ids, targets); }, random);
}

/// A module of one parameter.
struct Single {
  Param<double> p;

  explicit Single(std::initializer_list<double> values)
      : p{.value = Tensor<double>({static_cast<Index>(values.size())}, values), .grad = {}} {}
  void visit(auto&& v) { v("p", p); }
};

}  // namespace

TEST_CASE("a pass that is finite has nothing to tell, and leaves no gradient", "[nn][non_finite]") {
  const test::OneThread quick;
  auto model = test::rough_decoder<float>(kSmall, 1);
  CHECK_FALSE(search(model).has_value());
  CHECK_FALSE(search(model, Rng(3)).has_value());
  for_each_param(model, [](const std::string&, Param<float>& p) { CHECK(p.grad.empty()); });
}

TEST_CASE("a weight that is not finite is named before any op", "[nn][non_finite]") {
  const test::OneThread quick;
  auto model = test::rough_decoder<float>(kSmall, 1);
  float* w = model.blocks[1].attn.w_o.weight.value.data();
  w[9] = w[11] = std::numeric_limits<float>::infinity();
  const auto found = search(model);
  REQUIRE(found.has_value());
  CHECK(found->kind == NonFinite::Kind::parameter);
  CHECK(
      found->describe() ==
      "parameter 'blocks.1.attn.w_o.weight' is inf at element 9 of (8,8) before the pass; 2 of 64 "
      "elements are not finite");
}

TEST_CASE("the op in which numbers overflow is named with what it was given", "[nn][non_finite]") {
  const test::OneThread quick;
  auto model = test::rough_decoder<float>(kSmall, 1);
  for (Param<float>* p : {&model.blocks[1].attn.w_q.weight, &model.blocks[1].attn.w_k.weight})
    p->value = Tensor<float>::full(p->value.shape(), 1e25F);
  const auto found = search(model);
  REQUIRE(found.has_value());
  CHECK(found->kind == NonFinite::Kind::value);
  CHECK(found->op == "attention");
  CHECK(found->scope == "before blocks.1.attn.z");
  CHECK(found->shape == Shape{2, 4, 8});
  CHECK(found->inputs.size() == 3);  // q, k and v, which are finite
  CHECK(mentions(found->describe(),
                 {"op ", "'attention' (before blocks.1.attn.z) gave nan at element",
                  "it was given linear (2,4,8) up to "}));
}

TEST_CASE("a dropped pass is looked at with its own draws", "[nn][non_finite]") {
  const test::OneThread quick;
  Single m({1e200, 2});
  const auto loss = [&](const Ctx<double>& ctx) {
    REQUIRE(ctx.random != nullptr);
    return sum(square(dropout(ctx.use(m.p), 0.5, ctx.random)));
  };
  // Whether the large element is dropped follows from where the stream stands.
  int found = 0;
  for (std::uint64_t seed = 0; seed < 32; ++seed) {
    Rng draws(seed);
    const bool dropped = dropout<double>(m.p.value, 0.5, &draws).value().values()[0] == 0;
    const auto odd = first_non_finite<double>(m, loss, Rng(seed));
    CHECK(odd.has_value() == !dropped);
    found += odd.has_value() ? 1 : 0;
  }
  CHECK((found > 0 && found < 32));
}

TEST_CASE("a gradient that is not finite is found where the way back makes it",
          "[nn][non_finite]") {
  Single m({4, 0, 1});  // sqrt(0) is 0, its slope infinite
  const auto found = first_non_finite<double>(
      m, [&](const Ctx<double>& ctx) { return sum(sqrt(ctx.use(m.p)) * Var<double>(m.p.value)); });
  REQUIRE(found.has_value());
  CHECK(found->kind == NonFinite::Kind::gradient);
  CHECK(found->op == "sqrt");
  CHECK(found->place == 1);
  CHECK(found->element == 1);
  CHECK(mentions(found->describe(),
                 {"the backward of op 1 'sqrt' of p gave", "at element 1 of (3)",
                  "the gradient of its input 0", "the gradient of its result (3) up to 4"}));
  CHECK(m.p.grad.empty());
}

TEST_CASE("gradients that overflow in their sum are found, an input used twice too",
          "[nn][non_finite]") {
  Single m({1.0});
  const double most = std::numeric_limits<double>::max();
  const auto twice = [&](double factor) {
    return first_non_finite<double>(m, [&, factor](const Ctx<double>& ctx) {
      const Var<double> x = ctx.use(m.p), f = Tensor<double>({1}, {factor});
      return sum((x * f - x * f) + x * x);  // the two cancel, their gradients' sizes do not show
    });
  };
  CHECK_FALSE(twice(1).has_value());
  CHECK_FALSE(twice(most / 4).has_value());
  const auto seeded = first_non_finite<double>(
      m, [&](const Ctx<double>& ctx) { return sum(ctx.use(m.p)); }, std::nullopt,
      std::numeric_limits<double>::infinity());
  REQUIRE(seeded.has_value());
  CHECK(seeded->op == "sum");
}

TEST_CASE("what throws after a number was not finite does not hide it", "[nn][non_finite]") {
  Single m({1e200});
  const auto guarded = [&](const Ctx<double>& ctx) -> Var<double> {
    const Var<double> y = square(ctx.use(m.p));
    if (!std::isfinite(y.value().values()[0])) throw Error("my own check");
    return sum(y);
  };
  CHECK(first_non_finite<double>(m, guarded)->op == "square");
  m.p.value = Tensor<double>({1}, {2});
  CHECK_THROWS_WITH(
      first_non_finite<double>(
          m, [](const Ctx<double>&) -> Var<double> { throw Error("another mistake"); }),
      "another mistake");
}
