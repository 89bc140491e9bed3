// The same bits for any number of threads, at sizes cut into several blocks.
#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

/// Forward and backward with 1 thread, then again and again with 2 and 4.
template <Real T>
void check_threads(const std::type_identity_t<Function<T>>& f, const std::vector<Shape>& shapes) {
  std::vector<Tensor<T>> inputs;
  for (const Shape& s : shapes) inputs.push_back(random_tensor<T>(s, inputs.size() + 1));
  const auto run = [&](int n) {
    const Threads use(n);
    return pass<T>(f, inputs);
  };
  const Pass<T> one = run(1);
  for (const int n : {1, 2, 4, 2, 4}) {
    CAPTURE(n);
    const Pass<T> again = run(n);
    CHECK(same_bits(again.y, one.y));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      INFO("input " << i);
      CHECK(same_bits(again.d[i], one.d[i]));
    }
  }
}

template <Real T>
void check_attention(Attend<T> how, Index t, Index s) {
  const Index kv_heads = how.kv_heads == 0 ? how.heads : how.kv_heads;
  check_threads<T>(
      [&](const auto& v) {
        Rng rng(11);
        Attend<T> with = how;
        if (how.dropout > 0) with.random = &rng;
        return attention(v[0], v[1], v[2], with);
      },
      {{2, t, how.heads * 8}, {2, s, kv_heads * 8}, {2, s, kv_heads * 8}});
}

}  // namespace

TEMPLATE_TEST_CASE("attention gives the same bits for 1, 2 and 4 threads", "[ops][threads]", float,
                   double) {
  using T = TestType;
  check_attention<T>({.heads = 3, .mask = causal()}, 150, 150);
  check_attention<T>({.heads = 3, .mask = everything()}, 70, 130);
  check_attention<T>({.heads = 6, .kv_heads = 2, .mask = causal()}, 150, 150);
  const auto near = [](Index t, Index s) { return s <= t && s > t - 20; };
  check_attention<T>({.heads = 6, .kv_heads = 2, .mask = allow(150, 150, near)}, 150, 150);
  const Mask slopes = bias(random_tensor<double>({6, 150, 130}, 4));
  check_attention<T>(
      {.heads = 6, .kv_heads = 2, .mask = slopes & keys_below({130, 49}) & causal(20)}, 150, 130);
  check_attention<T>({.heads = 3, .mask = keys_below({130, 0}), .dropout = 0.3}, 70, 130);
}

TEMPLATE_TEST_CASE("attention's dropout gives the same bits for 1, 2 and 4 threads",
                   "[ops][threads][dropout]", float, double) {
  using T = TestType;
  check_attention<T>({.heads = 3, .mask = causal(), .dropout = 0.3}, 150, 150);
  check_attention<T>({.heads = 4, .kv_heads = 2, .mask = everything(), .dropout = 0.3}, 70, 75);
}

TEMPLATE_TEST_CASE("products give the same bits for 1, 2 and 4 threads", "[ops][threads]", float,
                   double) {
  using T = TestType;
  const auto biased = [](const auto& v) { return linear(v[0], v[1], v[2]); };
  check_threads<T>(biased, {{1100, 48}, {200, 48}, {200}});
  check_threads<T>(biased, {{2, 130, 40}, {800, 40}, {800}});  // wide: cut by columns too
  check_threads<T>([](const auto& v) { return gelu_linear(v[0], v[1], v[2]); },
                   {{1100, 256}, {200, 256}, {200}});
  check_threads<T>([](const auto& v) { return matmul(v[0], v[1]); }, {{300, 70}, {70, 500}});
  check_threads<T>([](const auto& v) { return matmul(v[0], v[0]); }, {{300, 300}});
  check_threads<T>([](const auto& v) { return linear(v[0], v[0]); }, {{300, 70}});
}

TEST_CASE("two products into one gradient wait for each other", "[ops][threads]") {
  // One tile each, so that two threads would take them at the same moment.
  const Tensor<float> x = random_tensor<float>({64, 700}, 1);
  const auto gradient = [&](int n) {
    const Threads use(n);
    return pass<float>([](const auto& v) { return linear(v[0], v[0]); }, {x}).d[0];
  };
  const Tensor<float> one = gradient(1);
  int different = 0;
  for (int round = 0; round < 30; ++round) different += same_bits(gradient(2), one) ? 0 : 1;
  CHECK(different == 0);
}

TEMPLATE_TEST_CASE("row ops give the same bits for 1, 2 and 4 threads", "[ops][threads]", float,
                   double) {
  using T = TestType;
  const Mask mask = keys_below({130, 49}) & bias(random_tensor<double>({3, 90, 130}, 4));
  check_threads<T>([&](const auto& v) { return masked_softmax(v[0], mask); }, {{2, 3, 90, 130}});
  check_threads<T>([](const auto& v) { return layer_norm(v[0], v[1], v[2]); },
                   {{2, 900, 50}, {50}, {50}});
  std::vector<Id> labels;
  for (Index i = 0; i < 600; ++i) labels.push_back(i % 7 == 3 ? kIgnore : static_cast<Id>(i % 131));
  check_threads<T>(
      [&](const auto& v) {
        return cross_entropy(v[0], Ids({2, 300}, labels));
      },
      {{2, 300, 131}});
  check_threads<T>(
      [&](const auto& v) {
        return linear_cross_entropy(v[0], v[1], Ids({2, 300}, labels));
      },
      {{2, 300, 20}, {900, 20}});
}

TEMPLATE_TEST_CASE("elementwise ops give the same bits for 1, 2 and 4 threads", "[ops][threads]",
                   float, double) {
  using T = TestType;
  constexpr Index kSize = 70'001;
  check_threads<T>([](const auto& v) { return gelu(v[0]); }, {{kSize}});
  check_threads<T>([](const auto& v) { return gelu(v[0], Gelu::tanh); }, {{kSize}});
  check_threads<T>([](const auto& v) { return v[0] * v[1] + v[0]; }, {{kSize}, {kSize}});
  check_threads<T>([](const auto& v) { return sum(v[0]) + mean(v[1]); }, {{kSize}, {kSize}});
  check_threads<T>(
      [](const auto& v) {
        Rng rng(11);
        return dropout(v[0], 0.3, &rng);
      },
      {{kSize}});
}

TEMPLATE_TEST_CASE("batches of products give the same bits for 1, 2 and 4 threads",
                   "[ops][threads]", float, double) {
  using T = TestType;
  const auto product = [](const auto& v) { return matmul(v[0], v[1]); };
  check_threads<T>(product, {{3, 4, 70, 30}, {3, 4, 30, 90}});
  check_threads<T>(product, {{4, 170, 30}, {30, 90}});
  check_threads<T>(product, {{170, 30}, {4, 30, 90}});
  check_threads<T>(product, {{4, 1, 70, 30}, {3, 30, 90}});
  check_threads<T>([](const auto& v) { return matmul(v[0], v[0]); }, {{5, 100, 100}});
}

TEMPLATE_TEST_CASE("primitives give the same bits for 1, 2 and 4 threads", "[ops][threads]", float,
                   double) {
  using T = TestType;
  const Shape shape{3, 150, 131};
  check_threads<T>([](const auto& v) { return tanh(-v[0]) / exp(v[1]); }, {shape, {150, 1}});
  check_threads<T>([](const auto& v) { return softmax(v[0]) + log_softmax(v[0]); }, {shape});
  check_threads<T>([](const auto& v) { return rms_norm(v[0], v[1]); }, {shape, {131}});
  check_threads<T>([](const auto& v) { return sum(v[0], {1}) + max(v[0], {0, 1}); }, {shape});
  check_threads<T>([](const auto& v) { return mean(v[0], {0, 2}) * max(v[0], {-1}); }, {shape});
  check_threads<T>(
      [](const auto& v) {
        const auto ends = concat<T>({slice(v[0], 1, 0, 40), slice(v[0], 1, 20, 150)}, 1);
        return permute(ends, {2, 0, 1});
      },
      {shape});
  std::vector<std::uint8_t> third;
  for (Index i = 0; i < 150; ++i) third.push_back(i % 3 == 0 ? 1 : 0);
  const Condition condition({150, 1}, third);
  check_threads<T>([&](const auto& v) { return where(condition, v[0], v[1]); }, {shape, {131}});
}

TEST_CASE("products of several tiles equal plain loops", "[ops]") {
  // What the threads agree on is also right: a matrix with itself, where both gradients meet.
  constexpr Index kSize = 150;
  const Tensor<double> x = random_tensor<double>({kSize, kSize}, 1),
                       dy = random_tensor<double>({kSize, kSize}, 2);
  const auto f = [](const auto& v) { return matmul(v[0], v[0]); };
  const Pass<double> found = pass<double>(f, {x}, dy);
  Tensor<double> y = Tensor<double>::zeros(x.shape()), dx = y;
  double *to_y = y.data(), *to_dx = dx.data();
  const auto at = [](const Tensor<double>& m, Index i, Index j) { return m.data()[i * kSize + j]; };
  for (Index i = 0; i < kSize; ++i)
    for (Index j = 0; j < kSize; ++j)
      for (Index k = 0; k < kSize; ++k) {
        to_y[i * kSize + j] += at(x, i, k) * at(x, k, j);
        to_dx[i * kSize + j] += at(dy, i, k) * at(x, j, k) + at(x, k, i) * at(dy, k, j);
      }
  CHECK(relative_gap(found.y, y) < 1e-13);
  CHECK(relative_gap(found.d[0], dx) < 1e-13);
}
