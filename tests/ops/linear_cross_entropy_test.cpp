// linear_cross_entropy() is cross_entropy() of linear(), a block of rows at a time.
#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

constexpr Index kFeatureWidth = 12;

template <Real T>
constexpr double kLossClose = std::same_as<T, double> ? 1e-12 : 1e-6;

/// A label for each row, some of them ignored, the last one not.
Ids labels_of(Index rows, Index vocab) {
  std::vector<Id> labels(static_cast<std::size_t>(rows));
  for (Index i = 0; i < rows; ++i)
    labels[static_cast<std::size_t>(rows - 1 - i)] =
        i % 7 == 3 ? kIgnore : static_cast<Id>(i * 31 % vocab);
  return {Shape{rows}, std::move(labels)};
}

template <Real T>
std::vector<Tensor<T>> loss_inputs(Index rows, Index vocab) {
  return {random_tensor<T>({rows, kFeatureWidth}, 1), random_tensor<T>({vocab, kFeatureWidth}, 2)};
}

template <Real T>
Pass<T> fused(const std::vector<Tensor<T>>& x, const Ids& labels, T dy = 1) {
  return pass<T>([&](const auto& v) { return linear_cross_entropy(v[0], v[1], labels); }, x,
                 Tensor<T>({}, {dy}));
}

template <Real T>
Pass<T> apart(const std::vector<Tensor<T>>& x, const Ids& labels, T dy = 1) {
  return pass<T>([&](const auto& v) { return cross_entropy(linear(v[0], v[1]), labels); }, x,
                 Tensor<T>({}, {dy}));
}

}  // namespace

TEMPLATE_TEST_CASE("linear_cross_entropy equals cross_entropy after linear", "[ops][loss]", float,
                   double) {
  using T = TestType;
  for (const Index rows : {1, 255, 256, 257, 600})
    for (const T dy : {T(1), T(-2.5)}) {
      CAPTURE(rows, dy);
      const auto x = loss_inputs<T>(rows, 37);
      const std::vector<Tensor<double>> precise{as<double>(x[0]), as<double>(x[1])};
      const Pass<double> plain =
          apart<double>(precise, labels_of(rows, 37), static_cast<double>(dy));
      const Pass<T> found = fused<T>(x, labels_of(rows, 37), dy);
      CHECK(relative_gap(found.y, plain.y) < kLossClose<T>);
      for (std::size_t i = 0; i < 2; ++i)
        CHECK(relative_gap(found.d[i], plain.d[i]) < kLossClose<T>);
    }
}

TEMPLATE_TEST_CASE("up to 256 rows linear_cross_entropy has the bits of the two ops", "[ops][loss]",
                   float, double) {
  using T = TestType;
  for (const Index rows : {1, 255, 256}) {
    CAPTURE(rows);
    const auto x = loss_inputs<T>(rows, 800);
    const Ids labels = labels_of(rows, 800);
    const Pass<T> one = fused<T>(x, labels), two = apart<T>(x, labels);
    CHECK(same_bits(one.y, two.y));
    for (std::size_t i = 0; i < 2; ++i) CHECK(same_bits(one.d[i], two.d[i]));
  }
}

TEMPLATE_TEST_CASE("no rows at all give a loss and gradients of zero", "[ops][loss]", float,
                   double) {
  using T = TestType;
  const Pass<T> none = fused<T>(loss_inputs<T>(0, 37), labels_of(0, 37));
  CHECK(none.y.item() == 0);
  CHECK(same_bits(none.d[1], Tensor<T>::zeros({37, kFeatureWidth})));
}

TEMPLATE_TEST_CASE("linear_cross_entropy without gradients gives the same loss and constants",
                   "[ops][loss]", float, double) {
  using T = TestType;
  const auto x = loss_inputs<T>(300, 37);
  const Ids labels = labels_of(300, 37);
  const Pass<T> all = fused<T>(x, labels);
  const Var<T> untracked = linear_cross_entropy<T>(x[0], x[1], labels);
  CHECK_FALSE(untracked.tracked());
  CHECK(same_bits(untracked.value(), all.y));
  const auto of_x = [&](const auto& v) { return linear_cross_entropy<T>(v[0], x[1], labels); };
  const auto of_w = [&](const auto& v) { return linear_cross_entropy<T>(x[0], v[0], labels); };
  const Tensor<T> one({}, {1});
  CHECK(same_bits(pass<T>(of_x, {x[0]}, one).d[0], all.d[0]));
  CHECK(same_bits(pass<T>(of_w, {x[1]}, one).d[0], all.d[1]));
}

TEMPLATE_TEST_CASE("with every label ignored linear_cross_entropy and its gradients are zero",
                   "[ops][loss]", float, double) {
  using T = TestType;
  const Ids none({300}, std::vector<Id>(300, kIgnore));
  const Pass<T> found = fused<T>(loss_inputs<T>(300, 37), none, 3);
  CHECK(found.y.item() == 0);
  for (const Tensor<T>& d : found.d)
    CHECK(std::all_of(d.values().begin(), d.values().end(), [](T v) { return v == 0; }));
}

TEST_CASE("linear_cross_entropy names the shapes that do not fit", "[ops][loss][errors]") {
  const auto of = [](const Shape& shape) -> Var<float> { return Tensor<float>::zeros(shape); };
  const auto message = [](const char* x, const char* w, const char* labels) {
    return fmt::format(
        "linear_cross_entropy: input {}, weight {} and labels {} do not fit (..., C), (V,C), (...)",
        x, w, labels);
  };
  const Ids two({2}, {0, 1});
  CHECK_THROWS_WITH(linear_cross_entropy(of({2, 3}), of({5, 4}), two),
                    message("(2,3)", "(5,4)", "(2)"));
  CHECK_THROWS_WITH(linear_cross_entropy(of({2, 3}), of({3}), two), message("(2,3)", "(3)", "(2)"));
  CHECK_THROWS_WITH(linear_cross_entropy(of({1, 2, 3}), of({5, 3}), two),
                    message("(1,2,3)", "(5,3)", "(2)"));
  CHECK_THROWS_WITH(linear_cross_entropy(of({}), of({5, 1}), Ids({}, {0})),
                    message("()", "(5,1)", "()"));
  CHECK_THROWS_AS(linear_cross_entropy(of({2, 3}), of({5, 4}), two), ShapeError);
}

TEST_CASE("linear_cross_entropy refuses a label that is no class, with its place",
          "[ops][loss][errors]") {
  const Var<float> x = Tensor<float>::zeros({2, 3}), w = Tensor<float>::zeros({5, 3});
  for (const Id label : {-1, 5}) {
    CHECK_THROWS_WITH(linear_cross_entropy(x, w, Ids({2}, {4, label})),
                      fmt::format("linear_cross_entropy: label {} at position 1 is neither in "
                                  "[0, 4] nor -100 (ignore)",
                                  label));
    CHECK_THROWS_AS(linear_cross_entropy(x, w, Ids({2}, {4, label})), ShapeError);
  }
}
