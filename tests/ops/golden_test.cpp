// Outputs and gradients against PyTorch's, from tests/golden.
#include "headwise/core/safetensors.hpp"
#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/taps.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

template <Real T>
constexpr double kGoldenClose = std::same_as<T, double> ? 1e-10 : 1e-5;

/// Numbers of one file, read in precision T; names below a prefix.
template <Real T>
class Golden {
 public:
  explicit Golden(const std::string& file, std::string prefix = "")
      : file_(std::string(HEADWISE_GOLDEN) + "/" + file), prefix_(std::move(prefix)) {}
  [[nodiscard]] Tensor<double> exact(const std::string& name) const {
    return file_.template tensor<double>(prefix_ + name);
  }
  [[nodiscard]] Tensor<T> operator()(const std::string& name) const { return as<T>(exact(name)); }
  [[nodiscard]] Ids ids(const std::string& name) const { return file_.ids(prefix_ + name); }

 private:
  TensorFile file_;
  std::string prefix_;
};

/// Runs f on the named inputs and compares y and every "d" + name.
template <Real T>
void check_op(const Golden<T>& golden, const std::vector<std::string>& names,
              const Function<T>& f) {
  std::vector<Tensor<T>> inputs;
  for (const std::string& name : names) inputs.push_back(golden(name));
  const Pass<T> found = pass(f, inputs, golden("dy"));
  CHECK(relative_gap(found.y, golden.exact("y")) < kGoldenClose<T>);
  for (std::size_t i = 0; i < names.size(); ++i) {
    INFO("d" << names[i]);
    CHECK(relative_gap(found.d[i], golden.exact("d" + names[i])) < kGoldenClose<T>);
  }
}

template <Real T>
using Vars = std::vector<Var<T>>;

}  // namespace

TEMPLATE_TEST_CASE("layer_norm equals PyTorch's", "[ops][golden]", float, double) {
  using T = TestType;
  check_op<T>(Golden<T>("ops.safetensors", "layer_norm/"), {"x", "weight", "bias"},
              [](const Vars<T>& v) { return layer_norm(v[0], v[1], v[2]); });
}

TEMPLATE_TEST_CASE("gelu equals PyTorch's, by both formulas", "[ops][golden]", float, double) {
  using T = TestType;
  check_op<T>(Golden<T>("ops.safetensors", "gelu_exact/"), {"x"},
              [](const Vars<T>& v) { return gelu(v[0]); });
  check_op<T>(Golden<T>("ops.safetensors", "gelu_tanh/"), {"x"},
              [](const Vars<T>& v) { return gelu(v[0], Gelu::tanh); });
}

TEMPLATE_TEST_CASE("embedding equals PyTorch's", "[ops][golden]", float, double) {
  using T = TestType;
  const Golden<T> golden("ops.safetensors", "embedding/");
  const Ids ids = golden.ids("ids");
  check_op<T>(golden, {"table"}, [&](const Vars<T>& v) { return embedding(v[0], ids); });
}

TEMPLATE_TEST_CASE("cross_entropy equals PyTorch's", "[ops][golden]", float, double) {
  using T = TestType;
  const Golden<T> golden("ops.safetensors", "cross_entropy/");
  const Ids targets = golden.ids("targets");
  const Pass<T> found = pass<T>([&](const Vars<T>& v) { return cross_entropy(v[0], targets); },
                                {golden("logits")}, Tensor<T>({}, {1}));
  CHECK(relative_gap(found.y, golden.exact("loss")) < kGoldenClose<T>);
  CHECK(relative_gap(found.d[0], golden.exact("dlogits")) < kGoldenClose<T>);
}

TEMPLATE_TEST_CASE("linear and attention equal PyTorch's MultiheadAttention", "[ops][golden]",
                   float, double) {
  using T = TestType;
  const Golden<T> golden("multihead.safetensors");
  const std::vector<std::string> names = {"x",   "w_q", "b_q", "w_k", "b_k",
                                          "w_v", "b_v", "w_o", "b_o"};
  KeepPattern<T> tap;
  const auto f = [&](const Vars<T>& v) {
    const Var<T> z =
        attention(linear(v[0], v[1], v[2]), linear(v[0], v[3], v[4]), linear(v[0], v[5], v[6]),
                  {.heads = 4, .mask = causal(), .tap = &tap});
    return linear(z, v[7], v[8]);
  };
  std::vector<Tensor<T>> inputs;
  for (const std::string& name : names) inputs.push_back(golden(name));
  const Pass<T> found = pass<T>(f, inputs, golden("dy"));
  CHECK(relative_gap(found.y, golden.exact("y")) < kGoldenClose<T>);
  CHECK(relative_gap(tap.pattern, golden.exact("pattern")) < kGoldenClose<T>);

  double largest = 0;  // of the layer's gradients: the key bias's own is zero but for rounding
  const Tensor<double> dw_k = golden.exact("dw_k");
  for (const double d : dw_k.values()) largest = std::max(largest, std::fabs(d));
  for (std::size_t i = 0; i < names.size(); ++i) {
    INFO("d" << names[i]);
    const double scale = names[i] == "b_k" ? largest : 0;
    CHECK(relative_gap(found.d[i], golden.exact("d" + names[i]), scale) < kGoldenClose<T>);
  }
}
