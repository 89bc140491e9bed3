#include "headwise/nn/visit.hpp"

#include <string>
#include <vector>

#include "headwise/nn/modules.hpp"
#include "support/catch.hpp"

using namespace headwise;

namespace {

using Names = std::vector<std::string>;

Block<float> block(const BlockConfig& config) {
  Rng rng(1);
  return Block<float>(config, rng);
}

Names names_in(Block<float> b, const std::string& prefix = "") {
  Names names;
  for_each_param(
      b, [&](const std::string& name, Param<float>&) { names.push_back(name); }, prefix);
  return names;
}

}  // namespace

TEST_CASE("a block names its parameters in the order of its visit", "[nn]") {
  CHECK(names_in(block({.width = 4, .heads = 2})) ==
        Names{"ln1.weight", "ln1.bias", "attn.w_q.weight", "attn.w_q.bias", "attn.w_k.weight",
              "attn.w_k.bias", "attn.w_v.weight", "attn.w_v.bias", "attn.w_o.weight",
              "attn.w_o.bias", "ln2.weight", "ln2.bias", "mlp.up.weight", "mlp.up.bias",
              "mlp.down.weight", "mlp.down.bias"});
}

TEST_CASE("absent members are passed over", "[nn]") {
  CHECK(names_in(block({.width = 4, .heads = 2, .bias = false})) ==
        Names{"ln1.weight", "attn.w_q.weight", "attn.w_k.weight", "attn.w_v.weight",
              "attn.w_o.weight", "ln2.weight", "mlp.up.weight", "mlp.down.weight"});
  CHECK(names_in(block({.width = 4, .heads = 2, .bias = false, .mlp = false})) ==
        Names{"ln1.weight", "attn.w_q.weight", "attn.w_k.weight", "attn.w_v.weight",
              "attn.w_o.weight"});
}

TEST_CASE("a prefix comes before every name", "[nn]") {
  const Names names = names_in(block({.width = 4, .bias = false, .mlp = false}), "blocks.3");
  REQUIRE(names.size() == 5);
  CHECK(names.front() == "blocks.3.ln1.weight");
  CHECK(names.back() == "blocks.3.attn.w_o.weight");
}

TEST_CASE("parameter_count counts the numbers of every parameter", "[nn]") {
  const auto count = [](const BlockConfig& c) {
    Block<float> b = block(c);
    return parameter_count(b);
  };
  const Index c = 4;  // 12 C^2 + 13 C with biases: 4 C^2 of attention, 8 C^2 of the MLP
  CHECK(count({.width = c, .heads = 2}) == 12 * c * c + 13 * c);
  CHECK(count({.width = c, .heads = 2, .bias = false}) == 12 * c * c + 2 * c);
  CHECK(count({.width = c, .heads = 2, .mlp = false}) == 4 * c * c + 6 * c);
  CHECK(count({.width = c, .heads = 2, .bias = false, .mlp = false}) == 4 * c * c + c);
}
