// The checks that prove the layers, and what the check of a module says of one that is wrong.
#include "headwise/nn/layer_table.hpp"

#include <atomic>
#include <set>

#include "support/catch.hpp"
#include "support/grad_cases.hpp"
#include "support/models.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

// C 6: a projection has 36 + 6 numbers, the MLP 6 24 + 24 and 24 6 + 6, a norm 6 + 6.
const std::vector<ExpectedCase> kExpected = {{"Linear", "matrix", 20 + 15 + 3},
                                             {"Linear", "rank 3", 30 + 15 + 3},
                                             {"Linear", "many rows", 45 + 15 + 3},
                                             {"Linear", "no bias", 20 + 15},
                                             {"Embedding", "ids once", 15},
                                             {"Embedding", "repeated ids", 15},
                                             {"LayerNorm", "matrix", 15 + 5 + 5},
                                             {"LayerNorm", "rank 3", 30 + 5 + 5},
                                             {"LayerNorm", "no bias", 15 + 5},
                                             {"LayerNorm", "of a sum", 60 + 5 + 5},
                                             {"LayerNorm", "of a sum, no bias", 30 + 5},
                                             {"MultiHeadAttention", "two heads", 48 + 4 * 42},
                                             {"MultiHeadAttention", "one head", 24 + 4 * 42},
                                             {"MultiHeadAttention", "no bias", 48 + 4 * 36},
                                             {"MultiHeadAttention", "dropout", 48 + 4 * 42},
                                             {"MultiHeadAttention", "watched", 48 + 4 * 42},
                                             {"Mlp", "matrix", 18 + 168 + 150},
                                             {"Mlp", "rank 3", 36 + 168 + 150},
                                             {"Mlp", "tanh", 18 + 168 + 150},
                                             {"Mlp", "no bias", 18 + 144 + 144},
                                             {"Mlp", "watched", 18 + 168 + 150},
                                             {"Block", "exact", 36 + 12 + 168 + 12 + 318},
                                             {"Block", "tanh", 36 + 12 + 168 + 12 + 318},
                                             {"Block", "no bias", 36 + 6 + 144 + 6 + 288},
                                             {"Block", "dropout", 36 + 12 + 168 + 12 + 318},
                                             {"Block", "attention only", 36 + 12 + 168},
                                             {"Block", "watched", 36 + 12 + 168 + 12 + 318}};

/// A weight, and a second weight that nobody may forget.
struct Scale {
  Param<double> w{.value = {{3}, {0.5, -1, 2}}, .grad = {}};
  Param<double> spare{.value = {{2}, {1, 3}}, .grad = {}};

  void visit(auto&& v) {
    v("w", w);
    v("spare", spare);
  }
};

/// case 24 of what users met elsewhere.
struct Affine {
  Param<double> w{.value = {{3, 1}, {1, 1, 1}}, .grad = {}};
  Param<double> b{.value = {{1, 3}, {0, 1, 2}}, .grad = {}};

  void visit(auto&& v) {
    v("w", w);
    v("b", b);
  }
};

const Tensor<double> kX = test::random_tensor<double>({2, 3}, 1);

const TensorCheck& tensor(const GradReport& report, const std::string& name) {
  for (const TensorCheck& t : report.tensors)
    if (t.name == name) return t;
  FAIL("no tensor is called " << name);
  throw 0;  // not reached
}

/// x, each element zero or 1 / (1 - rate) times as large; no parameters.
struct Drop {
  double rate;
  Var<double> operator()(const Ctx<double>& ctx, const Var<double>& x) const {
    return dropout(x, rate, ctx.random);
  }
  void visit(auto&&) {}
};

}  // namespace

TEST_CASE("every layer's gradients are right, of all its inputs and parameters",
          "[nn][gradcheck]") {
  require_cases(layer_cases<double>(), kExpected);
}

TEST_CASE("every layer of layers.def has checks", "[nn][gradcheck]") {
  std::vector<std::string> names;
  for (const GradCase& c : layer_cases<double>())
    if (names.empty() || names.back() != c.name) names.push_back(c.name);
  const std::vector<std::string> listed = {
#define HEADWISE_LAYER(name) #name,
#include "headwise/nn/layers.def"
#undef HEADWISE_LAYER
  };
  CHECK(names == listed);
}

TEST_CASE("layers are right with other weights, and raise no false alarm in float",
          "[nn][gradcheck]") {
  for (const GradCase& c : layer_cases<double>(7)) {
    CAPTURE(c.name, c.label);
    CHECK(c.check({}).verdict == Verdict::pass);
  }
  for (const GradCase& c : layer_cases<float>()) {
    const GradReport report = c.check({});
    CAPTURE(c.name, c.label, describe(report));
    CHECK(report.verdict != Verdict::fail);
    CHECK(report.tolerance == kGradToleranceFloat);
  }
}

TEST_CASE("a parameter that a layer does not use is named", "[nn][gradcheck]") {
  Scale layer;
  const GradReport report = gradcheck_module(
      layer, [&](const Ctx<double>& ctx, auto& x) { return x[0] * ctx.use(layer.w); }, {kX});
  CAPTURE(describe(report));
  CHECK(report.verdict != Verdict::pass);
  CHECK(tensor(report, "w").verdict == Verdict::pass);
  CHECK(tensor(report, "spare").verdict != Verdict::pass);
  CHECK(tensor(report, "spare").note.find("no gradient") != std::string::npos);
  CHECK(describe(report).find("spare") != std::string::npos);
}

TEST_CASE("a layer that cuts the graph is caught, and the parameter named", "[nn][gradcheck]") {
  Scale layer;  // case 25 of what users met elsewhere
  const auto uses_all = [&](const Ctx<double>& ctx, auto& x) {
    return x[0] * ctx.use(layer.w) + sum(ctx.use(layer.spare));
  };
  CHECK(gradcheck_module(layer, uses_all, {kX}).verdict == Verdict::pass);
  const auto cut = [&](const Ctx<double>& ctx, auto& x) {
    const Var<double> w = ctx.use(layer.w);
    return x[0] * Var<double>(w.value()) + sum(ctx.use(layer.spare));
  };
  const GradReport report = gradcheck_module(layer, cut, {kX});
  CAPTURE(describe(report));
  CHECK(report.verdict == Verdict::fail);
  CHECK(tensor(report, "w").verdict == Verdict::fail);
  CHECK(tensor(report, "spare").verdict == Verdict::pass);
  CHECK(tensor(report, "input 0").verdict == Verdict::pass);
  CHECK(report.where.starts_with("w, element "));
  CHECK(describe(report).find("w") != std::string::npos);

  const auto without = [&](const Ctx<double>& ctx, auto& x) {
    return record<double>("halve", x[0].value(), {x[0], ctx.use(layer.w)}, nullptr);
  };
  CHECK_THROWS_WITH(gradcheck_module(layer, without, {kX}), Catch::Contains("halve"));
}

TEST_CASE("a random layer is checked with its stream fixed", "[nn][gradcheck]") {
  Drop layer{0.2};  // case 35: x = 1 2 3 4
  const Tensor<double> x({4}, {1, 2, 3, 4});
  const auto forward = [&](const Ctx<double>& ctx, auto& in) { return layer(ctx, in[0]); };
  std::set<double> seen;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    GradOptions options;
    options.seed = seed;
    const GradReport report = gradcheck_module(layer, forward, {x}, options);
    CHECK(report.verdict == Verdict::pass);
    const Subject<double> subject = subject_of<double>(layer, forward, {x}, seed);
    for (Index row = 0; row < 4; ++row) {  // of the Jacobian
      Tape<double> tape;
      const Var<double> y = subject.forward(tape);
      const double weight = projection({4}).data()[row];
      const double slope = report.tensors.at(0).a.data()[row] / weight;
      CHECK((slope == Approx(1.25).epsilon(1e-12) || slope == 0));
      CHECK(y.value().data()[row] == Approx(slope * x.data()[row]).epsilon(1e-12));
      seen.insert(slope == 0 ? 0 : 1.25);
    }
  }
  CHECK(seen == std::set<double>{0, 1.25});
}

TEST_CASE("a layer that ignores the stream is called not deterministic", "[nn][gradcheck]") {
  Scale layer;
  std::atomic<std::uint64_t> calls = 0;
  const auto forward = [&](const Ctx<double>& ctx, auto& x) {
    Rng own(++calls);
    return dropout(x[0] * ctx.use(layer.w) + sum(ctx.use(layer.spare)), 0.5, &own);
  };
  const GradReport report = gradcheck_module(layer, forward, {kX});
  CAPTURE(describe(report));
  CHECK(report.verdict == Verdict::fail);
  REQUIRE(report.problems.size() == 1);
  CHECK(report.problems[0].starts_with("not deterministic"));
  CHECK(report.diagnosis.fault == Fault::none);  // never a plain wrong gradient
}

TEST_CASE("a bias gets the sum over what it was repeated along", "[nn][gradcheck]") {
  Affine layer;
  const auto loss = [&](const Ctx<double>& ctx, const auto& x) {
    return sum(square(matmul(x[0], ctx.use(layer.w)) + ctx.use(layer.b)));
  };
  const Tensor<double> x = Tensor<double>::full({2, 3}, 1);
  CHECK(loss(Ctx<double>{}, std::vector<Var<double>>{x}).item() == 100);
  const GradReport report = gradcheck_module(layer, loss, {x});
  CHECK(report.verdict == Verdict::pass);
  const double weight = projection({}).item();
  const auto check = [&](const std::string& name, const Tensor<double>& right) {
    const TensorCheck& t = tensor(report, name);
    REQUIRE(t.shape == right.shape());
    for (Index i = 0; i < right.size(); ++i) {
      CHECK(t.a.data()[i] / weight == Approx(right.data()[i]).epsilon(1e-12));
      CHECK(t.n.data()[i] / weight == Approx(right.data()[i]).epsilon(1e-7));
    }
  };
  check("w", Tensor<double>({3, 1}, {48, 48, 48}));
  check("b", Tensor<double>({1, 3}, {12, 16, 20}));
}

TEST_CASE("checking a module leaves it as it was", "[nn][gradcheck]") {
  Scale layer;
  layer.w.grad = Tensor<double>({3}, {7, 8, 9});
  const Scale before = layer;
  gradcheck_module(layer,
                   [&](const Ctx<double>& ctx, auto& x) {
                     return x[0] * ctx.use(layer.w) + sum(ctx.use(layer.spare));
                   },
                   {kX});
  CHECK(test::same_bits(layer.w.value, before.w.value));
  CHECK(test::same_bits(layer.w.grad, before.w.grad));
  CHECK(layer.spare.grad.empty());
}

TEST_CASE("noise is put on every parameter, always the same", "[nn]") {
  Scale one, two, other;
  roughen(one, 0.5, 3);
  roughen(two, 0.5, 3);
  roughen(other, 0.5, 4);
  CHECK(test::same_bits(one.w.value, two.w.value));
  CHECK_FALSE(test::same_bits(one.w.value, other.w.value));
  for (Index i = 0; i < 3; ++i) CHECK(one.w.value.data()[i] != Scale().w.value.data()[i]);
  for (Index i = 0; i < 2; ++i) CHECK(one.spare.value.data()[i] != Scale().spare.value.data()[i]);
}
