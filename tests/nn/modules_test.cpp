#include "headwise/nn/modules.hpp"

#include <cmath>
#include <set>

#include "headwise/autograd/gradcheck.hpp"
#include "headwise/core/safetensors.hpp"
#include "headwise/ops/op_table.hpp"
#include "support/catch.hpp"
#include "support/models.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;
using test::random_tensor;
using test::relative_gap;

namespace {

const BlockConfig kBlock{.width = 6, .heads = 2};

/// A module with noise on every parameter.
template <class M, class... A>
M rough(A... a) {
  Rng rng(3);
  M module = [&] {
    if constexpr (std::is_constructible_v<M, A..., Rng&>)
      return M(a..., rng);
    else
      return M(a...);
  }();
  roughen(module, 0.5, 4);
  return module;
}

/// Case 25: after one pass every parameter has a finite gradient of its own shape that is not
/// nothing. The key bias is zero in theory: softmax does not notice a shift of a whole row.
template <class M, class Forward>
void check_every_gradient_arrives(M& module, Forward forward) {
  Tape<double> tape;
  Rng random(9);
  const Var<double> y = forward(module, Ctx<double>{.tape = &tape, .random = &random});
  tape.backward(y, projection(y.shape()));
  for_each_param(module, [&](const std::string& name, const Param<double>& p) {
    CAPTURE(name);
    REQUIRE(p.grad.shape() == p.value.shape());
    REQUIRE_FALSE(p.grad.empty());
    const double most = largest(p.grad);
    if (name.ends_with("w_k.bias"))
      CHECK(most < 1e-12);
    else
      CHECK((most > 1e-6 && most < 1e6));
  });
}

const Tensor<double> kFeatures = random_tensor<double>({2, 5, 6}, 1);

}  // namespace

TEST_CASE("every parameter of every module gets a gradient of its own", "[nn]") {
  const auto on_x = [](auto& m, const Ctx<double>& ctx) { return m(ctx, kFeatures); };
  for (const bool bias : {true, false}) {
    BlockConfig c = kBlock;
    c.bias = bias;
    auto linear = rough<Linear<double>>(6, 4, bias, 0.02);
    check_every_gradient_arrives(linear, on_x);
    auto norm = rough<LayerNorm<double>>(6, bias);
    check_every_gradient_arrives(norm, on_x);
    auto attention = rough<MultiHeadAttention<double>>(c);
    check_every_gradient_arrives(attention, on_x);
    for (const Gelu kind : {Gelu::exact, Gelu::tanh}) {
      c.gelu = kind;
      auto mlp = rough<Mlp<double>>(c);
      check_every_gradient_arrives(mlp, on_x);
    }
    for (const bool mlp : {true, false}) {
      c.mlp = mlp;
      c.dropout = 0.2;
      auto block = rough<Block<double>>(c);
      check_every_gradient_arrives(block, on_x);
    }
  }
}

TEST_CASE("an embedding's gradient is zero exactly in the rows that were not used", "[nn]") {
  auto table = rough<Embedding<double>>(5, 3, 0.02);
  check_every_gradient_arrives(table, [](auto& m, const Ctx<double>& ctx) {
    return m(ctx, Ids({2, 2}, {0, 3, 3, 1}));
  });
  for (const Index row : {2, 4})
    for (Index i = 0; i < 3; ++i) CHECK(table.weight.grad.data()[row * 3 + i] == 0);
}

TEST_CASE("a frozen parameter is used but gets no gradient", "[nn]") {
  auto block = rough<Block<double>>(kBlock);
  const Tensor<double> before = block({}, kFeatures).value();
  block.attn.w_v.weight.trainable = false;
  Tape<double> tape;
  const Var<double> y = block(Ctx<double>{.tape = &tape}, kFeatures);
  CHECK(test::same_bits(y.value(), before));
  tape.backward(y, projection(y.shape()));
  CHECK(block.attn.w_v.weight.grad.empty());
  CHECK_FALSE(block.attn.w_v.bias.grad.empty());
  CHECK_FALSE(block.ln1.weight.grad.empty());
}

TEST_CASE("a new module starts at zero biases and gains of one", "[nn]") {
  Rng rng(3);
  const Linear<float> linear(3, 2, true, 0.02, rng);
  CHECK(test::same_bits(linear.bias.value, Tensor<float>::zeros({2})));
  CHECK(linear.weight.value.shape() == Shape{2, 3});
  const LayerNorm<float> norm(3, true);
  CHECK(test::same_bits(norm.weight.value, Tensor<float>::full({3}, 1)));
  CHECK(test::same_bits(norm.bias.value, Tensor<float>::zeros({3})));
  CHECK(LayerNorm<float>(3, false).bias.value.empty());
}

TEST_CASE("a block records only ops that have a gradient check", "[nn]") {
  std::set<std::string> checked{"leaf", "param"};
  for (const OpSpec& spec : op_table()) checked.insert(spec.name);
  BlockConfig c = kBlock;
  c.dropout = 0.2;
  Tape<double> tape;
  Rng random(9);
  const auto block = rough<Block<double>>(c);
  block(Ctx<double>{.tape = &tape, .random = &random}, kFeatures);
  const std::vector<std::string> ops = tape.op_names();
  CHECK(std::count(ops.begin(), ops.end(), "dropout") == 2);
  CHECK(std::count(ops.begin(), ops.end(), "attention") == 1);
  for (const std::string& op : ops) {
    CAPTURE(op);
    CHECK(checked.contains(op));
  }
}

TEMPLATE_TEST_CASE("multi-head attention equals PyTorch's", "[nn][golden]", float, double) {
  using T = TestType;
  const double tolerance = std::is_same_v<T, float> ? 1e-5 : 1e-10;
  const TensorFile file(HEADWISE_GOLDEN "/multihead.safetensors");
  const auto golden = [&](const std::string& name) {
    return test::as<T>(file.tensor<double>(name));
  };
  Rng rng(1);
  MultiHeadAttention<T> mha({.width = 16, .heads = std::stoi(file.metadata().at("heads"))}, rng);
  const std::vector<std::pair<std::string, Linear<T>*>> parts = {
      {"q", &mha.w_q}, {"k", &mha.w_k}, {"v", &mha.w_v}, {"o", &mha.w_o}};
  for (const auto& [name, part] : parts) {
    part->weight.value = golden("w_" + name);
    part->bias.value = golden("b_" + name);
  }
  Tape<T> tape;
  test::Recorder<T> probe;
  const Var<T> x = tape.leaf(golden("x"));
  const Var<T> y = mha(Ctx<T>{.tape = &tape, .probe = &probe}, x);
  CHECK(relative_gap(y.value(), golden("y")) < tolerance);
  CHECK(relative_gap(probe.seen.at("pattern"), golden("pattern")) < tolerance);
  tape.backward(y, golden("dy"));
  CHECK(relative_gap(tape.grad(x), golden("dx")) < tolerance);
  for (const auto& [name, part] : parts) {
    CAPTURE(name);
    const double scale = largest(file.tensor<double>("dw_" + name));  // b_k is zero in theory
    CHECK(relative_gap(part->weight.grad, golden("dw_" + name)) < tolerance);
    CHECK(relative_gap(part->bias.grad, golden("db_" + name), name == "k" ? scale : 0) < tolerance);
  }
}
