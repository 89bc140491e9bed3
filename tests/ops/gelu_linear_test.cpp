// gelu_linear() is linear() of gelu(), to the bit, without keeping what lies between.
#include "headwise/core/memory.hpp"
#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

/// Rows of 256 elements: up to 1024 of them gelu(x) is kept for the backward.
constexpr Index kWidth = 256, kSmall = 40, kLarge = 1100;

template <Real T>
std::vector<Tensor<T>> inputs(Index rows, bool with_bias) {
  std::vector<Tensor<T>> x{random_tensor<T>({rows, kWidth}, 1), random_tensor<T>({9, kWidth}, 2)};
  if (with_bias) x.push_back(random_tensor<T>({9}, 3));
  return x;
}

/// Bytes that y and its tape hold besides the inputs.
std::int64_t held(Index rows) {
  const auto x = inputs<float>(rows, true);
  Tape<float> tape;
  const Var<float> in = tape.leaf(x[0]), w = tape.leaf(x[1]), b = tape.leaf(x[2]);
  const auto before = static_cast<std::int64_t>(memory_stats().live_bytes);
  const Var<float> y = gelu_linear(in, w, b);
  return static_cast<std::int64_t>(memory_stats().live_bytes) - before - 4 * y.shape().size();
}

}  // namespace

TEMPLATE_TEST_CASE("gelu_linear has the bits of linear after gelu", "[ops]", float, double) {
  using T = TestType;
  for (const Index rows : {kSmall, kLarge})
    for (const Gelu kind : {Gelu::exact, Gelu::tanh})
      for (const bool with_bias : {false, true}) {
        CAPTURE(rows, kind == Gelu::tanh, with_bias);
        const auto bias = [&](const auto& x) { return with_bias ? x[2] : Var<T>(); };
        const auto x = inputs<T>(rows, with_bias);
        const Pass<T> one =
            pass<T>([&](const auto& v) { return gelu_linear(v[0], v[1], bias(v), kind); }, x);
        const Pass<T> two =
            pass<T>([&](const auto& v) { return linear(gelu(v[0], kind), v[1], bias(v)); }, x);
        CHECK(same_bits(one.y, two.y));
        for (std::size_t i = 0; i < x.size(); ++i) CHECK(same_bits(one.d[i], two.d[i]));
      }
}

TEST_CASE("gelu_linear gives the same gradient whichever others are wanted", "[ops]") {
  for (const Index rows : {kSmall, kLarge}) {
    const auto x = inputs<double>(rows, true);
    const Pass<double> all =
        pass<double>([](const auto& v) { return gelu_linear(v[0], v[1], v[2]); }, x);
    for (std::size_t i = 0; i < 3; ++i) {
      CAPTURE(rows, i);
      const auto only = [&](const auto& v) {
        std::vector<Var<double>> in(x.begin(), x.end());
        in[i] = v[0];
        return gelu_linear(in[0], in[1], in[2]);
      };
      CHECK(same_bits(pass<double>(only, {x[i]}).d[0], all.d[i]));
    }
  }
}

TEST_CASE("of a large hidden layer gelu_linear keeps nothing", "[ops][memory]") {
  CHECK(held(kLarge) < 4 * kLarge * kWidth / 10);
  CHECK(held(kSmall) >= 2 * 4 * kSmall * kWidth);  // gelu and its derivative: the count counts
}
