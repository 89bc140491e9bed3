#include <limits>

#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

template <class F>
Tensor<float> row(Index n, F f) {
  Tensor<float> x = Tensor<float>::uninitialized({1, n});
  float* out = x.data();
  for (Index i = 0; i < n; ++i) out[i] = static_cast<float>(f(static_cast<double>(i)));
  return x;
}

Tensor<float> normed(const Tensor<float>& x) { return layer_norm<float>(x, {}, {}).value(); }

}  // namespace

TEST_CASE("layer_norm keeps its digits on rows with a large mean", "[ops][layer_norm]") {
  const Tensor<float> a = normed(row(4, [](double i) { return 40000 + i; }));
  CHECK(relative_gap(a, Tensor<double>({1, 4}, {-1.3416354, -0.4472118, 0.4472118, 1.3416354})) <
        1e-6);
  CHECK(same_bits(normed(row(256, [](double) { return 1234; })), Tensor<float>::zeros({1, 256})));
  const Tensor<float> c = normed(row(16, [](double i) { return 1000 + i * 0.001; }));
  CHECK(c.data()[0] == Approx(-1.341508).margin(1e-3));
  CHECK(c.data()[15] == Approx(1.344237).margin(1e-3));
}

TEST_CASE("layer_norm's gradient keeps its digits on rows with a large mean", "[ops][layer_norm]") {
  // Ten thousand more on every element changes neither the result nor its gradient, and these
  // inputs are exact in float.
  const auto f = [](const auto& v) { return layer_norm(v[0], {}, {}); };
  const Tensor<float> low = row(33, [](double i) { return static_cast<int>(i * 7) % 11; });
  const Tensor<float> high = row(33, [](double i) { return 1e4 + static_cast<int>(i * 7) % 11; });
  const Pass<float> near = pass<float>(f, {low}), far = pass<float>(f, {high});
  CHECK(relative_gap(far.y, near.y) < 1e-5);
  CHECK(relative_gap(far.d[0], near.d[0]) < 1e-5);
}

TEST_CASE("layer_norm takes any gain, bias and eps", "[ops][layer_norm]") {
  const Tensor<double> x({1, 2}, {1, 3}), gain({2}, {2, 10}), bias({2}, {5, 7});
  CHECK(relative_gap(layer_norm<double>(x, gain, bias, 0).value(),
                     Tensor<double>({1, 2}, {3, 17})) < 1e-14);
  CHECK(relative_gap(layer_norm<double>(x, gain, {}, 3).value(), Tensor<double>({1, 2}, {-1, 5})) <
        1e-14);  // sqrt(1 + 3) = 2
  CHECK(relative_gap(layer_norm<double>(x, {}, bias, 0).value(), Tensor<double>({1, 2}, {4, 8})) <
        1e-14);
}

TEST_CASE("layer_norm of a constant row is its bias and has a finite gradient",
          "[ops][layer_norm]") {
  const Pass<float> found =
      pass<float>([](const auto& v) { return layer_norm(v[0], v[1], v[2]); },
                  {Tensor<float>::full({3, 5}, 0.1F), random_tensor<float>({5}, 1),
                   random_tensor<float>({5}, 2)});
  for (Index i = 0; i < 15; ++i)
    CHECK(found.y.data()[i] == random_tensor<float>({5}, 2).data()[i % 5]);
  for (const Tensor<float>& d : found.d)
    for (const float x : d.values()) CHECK(std::isfinite(x));
}

TEST_CASE("a NaN in one row stays in it", "[ops][layer_norm]") {
  Tensor<float> x = random_tensor<float>({3, 21}, 1);
  x.data()[21 + 20] = std::numeric_limits<float>::quiet_NaN();
  const Tensor<float> y = normed(x);
  for (Index i = 0; i < 63; ++i) {
    CAPTURE(i);
    CHECK(std::isnan(y.data()[i]) == (i / 21 == 1));
  }
}

TEMPLATE_TEST_CASE("add_layer_norm has the bits of add and layer_norm", "[ops][layer_norm]", float,
                   double) {
  using T = TestType;
  std::vector<Tensor<T>> x{random_tensor<T>({3, 130, 37}, 1), random_tensor<T>({3, 130, 37}, 2),
                           random_tensor<T>({37}, 3), random_tensor<T>({37}, 4)};
  const Pass<T> one = pass<T>(
      [](const auto& v) {
        const SumAndNorm<T> y = add_layer_norm(v[0], v[1], v[2], v[3]);
        return y.sum * y.norm;
      },
      x);
  const Pass<T> two = pass<T>(
      [](const auto& v) {
        const Var<T> sum = v[0] + v[1];
        return sum * layer_norm(sum, v[2], v[3]);
      },
      x);
  CHECK(same_bits(one.y, two.y));
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(same_bits(one.d[i], two.d[i]));
}
