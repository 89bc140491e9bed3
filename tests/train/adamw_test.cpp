#include "headwise/train/adamw.hpp"

#include <limits>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using test::same_bits;

namespace {

/// One of each kind: AdamW decays the first alone.
template <Real T>
struct Pair {
  Param<T> matrix, vector;

  explicit Pair(T value) {
    matrix.value = Tensor<T>::full({2, 2}, value);
    vector.value = Tensor<T>::full({3}, value);
  }
  void gradients(T value) {
    matrix.grad = Tensor<T>::full({2, 2}, value);
    vector.grad = Tensor<T>::full({3}, value);
  }
  void visit(auto&& v) {
    v("matrix", matrix);
    v("vector", vector);
  }
};

constexpr AdamWOptions kTextbook{.weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};

template <Real T>
bool all(const Tensor<T>& x, T value) {
  return same_bits(x, Tensor<T>::full(x.shape(), value));
}

}  // namespace

TEMPLATE_TEST_CASE("AdamW decays the parameter and not the step", "[train][adamw]", float, double) {
  // Case 39. Decay after the step would give 0.891, decay in the gradient 0.9.
  const double margin = std::is_same_v<TestType, float> ? 2e-7 : 5e-11;
  Pair<TestType> m(1);
  AdamW<TestType> adam(kTextbook);
  const double expected[] = {0.8900000020, 0.8544662987}, gradients[] = {0.5, -0.25};
  for (std::size_t step = 0; step < 2; ++step) {
    m.gradients(static_cast<TestType>(gradients[step]));
    adam.step(m, 0.1);
    for (const TestType p : m.matrix.value.values())
      CHECK(static_cast<double>(p) == Approx(expected[step]).epsilon(0).margin(margin));
  }
  CHECK(adam.moments.at("matrix").updates == 2);
  for (const TestType p : m.vector.value.values())  // the same steps without the decay
    CHECK(static_cast<double>(p) == Approx(0.8733662987).epsilon(0).margin(margin));
}

TEMPLATE_TEST_CASE("AdamW decays matrices and leaves vectors alone", "[train][adamw]", float,
                   double) {
  Pair<TestType> m(1);
  m.gradients(0);
  AdamW<TestType>(kTextbook).step(m, 0.1);
  CHECK(all(m.matrix.value, static_cast<TestType>(0.99)));
  CHECK(all(m.vector.value, TestType(1)));
}

TEST_CASE("an unused row of a used table is decayed with its table", "[train][adamw]") {
  Pair<double> m(1);
  m.gradients(0);
  m.matrix.grad = Tensor<double>({2, 2}, {0.5, 0.5, 0, 0});
  AdamW<double>(kTextbook).step(m, 0.1);
  CHECK(m.matrix.value.data()[3] == 0.99);
  CHECK(m.matrix.value.data()[0] < 0.9);
}

TEST_CASE("parameters that took no part in the step stay as they are", "[train][adamw]") {
  Pair<float> m(1);
  AdamW<float> adam(kTextbook);
  CHECK(without_gradient(m) == std::vector<std::string>{"matrix", "vector"});
  adam.step(m, 0.1);  // no backward at all
  CHECK(adam.moments.empty());
  CHECK(gradient_norm(m) == 0);

  m.gradients(0.5F);
  m.matrix.grad = {};  // unused
  CHECK(without_gradient(m) == std::vector<std::string>{"matrix"});
  adam.step(m, 0.1);
  CHECK(all(m.matrix.value, 1.F));
  CHECK_FALSE(adam.moments.contains("matrix"));
  CHECK(adam.moments.at("vector").updates == 1);

  const Moments<float> before = adam.moments.at("vector");
  const Tensor<float> value = m.vector.value;
  m.vector.trainable = false;  // frozen, with a gradient left over
  m.gradients(0.5F);
  adam.step(m, 0.1);
  CHECK(without_gradient(m).empty());
  CHECK(same_bits(m.vector.value, value));
  CHECK(same_bits(adam.moments.at("vector").mean, before.mean));
  CHECK(same_bits(adam.moments.at("vector").square, before.square));
  CHECK(adam.moments.at("vector").updates == 1);
  CHECK(adam.moments.at("matrix").updates == 1);  // its own counter: this was its first update
}

TEST_CASE("a frozen parameter is not listed as one without a gradient", "[train][adamw]") {
  Pair<float> m(1);
  m.matrix.trainable = false;
  CHECK(without_gradient(m) == std::vector<std::string>{"vector"});
}

TEMPLATE_TEST_CASE("a gradient that is not finite is refused by name and changes nothing",
                   "[train][adamw][errors]", float, double) {
  using T = TestType;
  for (const T bad : {std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(),
                      std::numeric_limits<T>::quiet_NaN()}) {
    Pair<T> m(1);
    m.gradients(T(0.5));
    m.vector.grad = Tensor<T>({3}, {1, bad, 1});
    const std::string message = test::message_of<Error>([&] { gradient_norm(m); });
    CAPTURE(message);
    CHECK(message.starts_with("gradient of 'vector' is not finite (squared norm "));
    CHECK(all(m.matrix.value, T(1)));
    CHECK(all(m.vector.value, T(1)));
    CHECK(all(m.matrix.grad, T(0.5)));
  }
}

TEST_CASE("the gradient norm is over all parameters and in double", "[train][adamw]") {
  Pair<float> m(1);
  m.matrix.grad = Tensor<float>({2, 2}, {1, 2, 2, 4});
  m.vector.grad = Tensor<float>({3}, {10, 10, 10});
  CHECK(gradient_norm(m) == Approx(std::sqrt(325.)).epsilon(1e-15));
  m.gradients(1e30F);  // its square is no float
  CHECK(gradient_norm(m) == Approx(1e30 * std::sqrt(7.)).epsilon(1e-6));
}

TEST_CASE("clipping shortens what is too long and nothing else", "[train][adamw]") {
  CHECK(clip_factor(5, 1) == 0.2);
  CHECK(3 * clip_factor(5, 1) == Approx(0.6).epsilon(1e-15));
  CHECK(4 * clip_factor(5, 1) == Approx(0.8).epsilon(1e-15));
  CHECK(clip_factor(1, 1) == 1);
  CHECK(clip_factor(0.5, 1) == 1);
  CHECK(clip_factor(0, 1) == 1);    // a zero gradient stays zero: no 0/0
  CHECK(clip_factor(1e9, 0) == 1);  // no clipping
}

TEMPLATE_TEST_CASE("a scaled step is a step with the scaled gradient", "[train][adamw]", float,
                   double) {
  using T = TestType;
  Pair<T> scaled(1), plain(1);
  AdamW<T> a(kTextbook), b(kTextbook);
  for (int step = 0; step < 3; ++step) {
    scaled.gradients(4);
    plain.gradients(T(0.5));
    a.step(scaled, 0.1, 0.125);  // an exact power of two: the same bits
    b.step(plain, 0.1);
  }
  CHECK(same_bits(scaled.matrix.value, plain.matrix.value));
  CHECK(same_bits(a.moments.at("vector").square, b.moments.at("vector").square));
}

TEST_CASE("a gradient of another shape is refused", "[train][adamw][errors]") {
  Pair<float> m(1);
  m.gradients(1);
  m.matrix.grad = Tensor<float>::zeros({4});
  AdamW<float> adam;
  CHECK_THROWS_WITH(adam.step(m, 0.1), "adamw: gradient (4) of a parameter (2,2)");
}

TEST_CASE("zero_grad forgets every gradient", "[train][adamw]") {
  Pair<float> m(1);
  m.gradients(1);
  zero_grad(m);
  CHECK(m.matrix.grad.empty());
  CHECK(m.vector.grad.empty());
}
