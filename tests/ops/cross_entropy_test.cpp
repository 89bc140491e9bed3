#include <cmath>
#include <limits>

#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

template <Real T>
Pass<T> loss_of(const Tensor<T>& logits, const Ids& labels) {
  return pass<T>([&](const auto& v) { return cross_entropy(v[0], labels); }, {logits},
                 Tensor<T>({}, {1}));
}

}  // namespace

TEMPLATE_TEST_CASE("ignored labels do not count in the mean", "[ops][loss]", float, double) {
  using T = TestType;
  const Ids labels({3}, {1, kIgnore, 2});
  CHECK(counted(labels) == 2);
  const Pass<T> found = loss_of(Tensor<T>::zeros({3, 4}), labels);
  CHECK(std::fabs(static_cast<double>(found.y.item()) - std::log(4.0)) < 1e-6);
  const Tensor<T> expected({3, 4}, {T(.125), T(-.375), T(.125), T(.125), 0, 0, 0, 0, T(.125),
                                    T(.125), T(-.375), T(.125)});
  CHECK(relative_gap(found.d[0], expected) < 1e-6);
  for (Index i = 4; i < 8; ++i) CHECK(found.d[0].data()[i] == 0);
}

TEMPLATE_TEST_CASE("with every label ignored loss and gradients are zero", "[ops][loss]", float,
                   double) {
  using T = TestType;
  const Ids labels({2}, {kIgnore, kIgnore});
  CHECK(counted(labels) == 0);
  const Pass<T> found = loss_of(random_tensor<T>({2, 4}, 1), labels);
  CHECK(found.y.item() == 0);
  CHECK(same_bits(found.d[0], Tensor<T>::zeros({2, 4})));
  CHECK(loss_of(Tensor<T>::zeros({0, 4}), Ids({0}, {})).y.item() == 0);
}

TEST_CASE("what stands in the rows of ignored labels does not matter", "[ops][loss]") {
  Tensor<float> logits = random_tensor<float>({2, 4}, 1);
  const Ids labels({2}, {3, kIgnore});
  const Pass<float> clean = loss_of(logits, labels);
  logits.data()[5] = std::numeric_limits<float>::quiet_NaN();
  const Pass<float> odd = loss_of(logits, labels);
  CHECK(same_bits(odd.y, clean.y));
  CHECK(same_bits(odd.d[0], clean.d[0]));
}

TEST_CASE("cross_entropy takes logits, not probabilities", "[ops][loss]") {
  const Ids label({1}, {1});
  const double loss =
      cross_entropy<double>(Tensor<double>({1, 2}, {0, std::log(3.0)}), label).item();
  CHECK(loss == Approx(0.2876820724518).epsilon(1e-12));  // -log 0.75
  const double twice = cross_entropy<double>(Tensor<double>({1, 2}, {0.25, 0.75}), label).item();
  CHECK(twice == Approx(0.4740769842).epsilon(1e-9));  // of probabilities: the softmax comes twice
}

TEMPLATE_TEST_CASE("large logits do not overflow the loss", "[ops][loss]", float, double) {
  using T = TestType;
  const double first = std::same_as<T, double> ? 0.4975000208 : 0.4975586;  // the input rounds too
  const Pass<T> found = loss_of(Tensor<T>({1, 4}, {T(7999.99), 8000, 2, 1}), Ids({1}, {0}));
  CHECK(found.y.item() == Approx(-std::log(first)).epsilon(1e-6));
  CHECK(relative_gap(found.d[0], Tensor<double>({1, 4}, {first - 1, 1 - first, 0, 0})) < 1e-6);
  const Pass<T> low = loss_of(Tensor<T>({1, 2}, {-1000, -1000}), Ids({1}, {1}));
  CHECK(low.y.item() == Approx(std::log(2.0)));
}

TEST_CASE("a certain and wrong prediction costs its distance, not infinity", "[ops][loss]") {
  const Pass<float> found = loss_of(Tensor<float>({1, 2}, {0, 1000}), Ids({1}, {0}));
  CHECK(found.y.item() == 1000);
  CHECK(same_bits(found.d[0], Tensor<float>({1, 2}, {-1, 1})));
}

TEST_CASE("a NaN among the logits makes the loss NaN", "[ops][loss]") {
  for (const Index at : {0, 3, 9, 20}) {
    CAPTURE(at);
    Tensor<float> logits = random_tensor<float>({1, 21}, 1);
    logits.data()[at] = std::numeric_limits<float>::quiet_NaN();
    CHECK(std::isnan(cross_entropy<float>(logits, Ids({1}, {5})).item()));
  }
}

TEST_CASE("the loss is summed in double", "[ops][loss]") {
  // So many that a float running sum of them would be off in the fourth digit.
  constexpr Index kRows = 300'000;
  const Ids labels({kRows}, std::vector<Id>(kRows, 0));
  const float loss = cross_entropy<float>(Tensor<float>::zeros({kRows, 2}), labels).item();
  CHECK(loss == static_cast<float>(std::log(2.0)));
}

TEST_CASE("a label that is no class is refused with its place", "[ops][loss][errors]") {
  const Var<float> logits = Tensor<float>::zeros({3, 4});
  CHECK_THROWS_WITH(cross_entropy(logits, Ids({3}, {1, -4, 2})),
                    "cross_entropy: label -4 at position 1 is neither in [0, 3] nor -100 (ignore)");
  CHECK_THROWS_WITH(cross_entropy(logits, Ids({3}, {1, 2, 4})),
                    "cross_entropy: label 4 at position 2 is neither in [0, 3] nor -100 (ignore)");
  const Var<float> wide = Tensor<float>::zeros({2, 16});
  for (const Id id : {-1, 16, 2'000'000'000}) {
    CHECK_THROWS_WITH(cross_entropy(wide, Ids({2}, {3, id})),
                      fmt::format("cross_entropy: label {} at position 1 is neither in [0, 15] nor "
                                  "-100 (ignore)",
                                  id));
    CHECK_THROWS_AS(cross_entropy(wide, Ids({2}, {3, id})), ShapeError);
  }
  CHECK(cross_entropy(logits, Ids({3}, {1, 0, 2})).item() == Approx(std::log(4.0)));
}

TEST_CASE("logits and labels that do not fit are refused with their shapes",
          "[ops][loss][errors]") {
  const Var<float> logits = Tensor<float>::zeros({2, 3, 4});
  CHECK_THROWS_WITH(cross_entropy(logits, Ids({5}, {0, 1, 2, 3, 0})),
                    "cross_entropy: logits (2,3,4) and labels (5) do not fit (..., V), (...)");
  CHECK_THROWS_WITH(cross_entropy<float>(Tensor<float>({}, {1}), Ids({}, {0})),
                    "cross_entropy: logits () and labels () do not fit (..., V), (...)");
  // As many labels as rows, but of a transposed batch: each row would be graded by another's label.
  CHECK_THROWS_WITH(cross_entropy(logits, Ids({3, 2}, {0, 1, 2, 3, 0, 1})),
                    "cross_entropy: logits (2,3,4) and labels (3,2) do not fit (..., V), (...)");
}
