// linear() of few rows: a decoded token's logits do not depend on what is decoded beside it.
#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

constexpr Index kMost = 8, kInputs = 129, kOutputs = 1000;  // several blocks of outputs

template <Real T>
Tensor<T> rows_of(const Tensor<T>& x, Index from, Index n) {
  const Index c = x.shape().last();
  return {Shape{n, c},
          x.values().subspan(static_cast<std::size_t>(from * c), static_cast<std::size_t>(n * c))};
}

template <Real T>
struct Layer {
  Tensor<T> x = random_tensor<T>({kMost + 1, kInputs}, 1);
  Tensor<T> w = random_tensor<T>({kOutputs, kInputs}, 2), b = random_tensor<T>({kOutputs}, 3);

  [[nodiscard]] Tensor<T> linear(Index from, Index n) const {
    return headwise::linear<T>(rows_of(x, from, n), w, b).value();
  }
};

}  // namespace

TEMPLATE_TEST_CASE("up to eight rows of linear have the bits that each has alone", "[ops][linear]",
                   float, double) {
  using T = TestType;
  const Layer<T> layer;
  for (Index n = 1; n <= kMost; ++n) {
    const Tensor<T> y = layer.linear(0, n);
    for (Index r = 0; r < n; ++r) {
      CAPTURE(n, r);
      CHECK(same_bits(rows_of(y, r, 1), layer.linear(r, 1)));
    }
  }
}

TEMPLATE_TEST_CASE("few rows of linear equal those of a larger product", "[ops][linear]", float,
                   double) {
  using T = TestType;
  const Layer<T> layer;
  const Tensor<T> all = layer.linear(0, kMost + 1);
  for (Index n = 1; n <= kMost; ++n) {
    CAPTURE(n);
    CHECK(relative_gap(layer.linear(0, n), rows_of(all, 0, n)) < (sizeof(T) == 4 ? 1e-6 : 1e-14));
  }
}

TEMPLATE_TEST_CASE("few rows of linear have the same bits for 1, 2 and 4 threads",
                   "[ops][linear][threads]", float, double) {
  using T = TestType;
  const Layer<T> layer;
  for (const Index n : {Index{1}, Index{3}, kMost}) {
    const auto run = [&](int count) {
      const Threads use(count);
      return layer.linear(0, n);
    };
    const Tensor<T> one = run(1);
    for (const int count : {2, 4, 2, 4}) CHECK(same_bits(run(count), one));
  }
}

TEMPLATE_TEST_CASE("few rows of gelu_linear have the bits of linear after gelu", "[ops][linear]",
                   float, double) {
  using T = TestType;
  const Layer<T> layer;
  for (Index n = 1; n <= kMost + 1; ++n) {
    CAPTURE(n);
    const Var<T> x = rows_of(layer.x, 0, n);
    CHECK(same_bits(gelu_linear<T>(x, layer.w, layer.b).value(),
                    linear<T>(gelu(x), layer.w, layer.b).value()));
  }
}
