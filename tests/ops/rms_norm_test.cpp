// rms_norm against its formula.
#include <cmath>

#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

/// The formula, of small ops.
template <Real T>
Var<T> composed(const Var<T>& x, const Var<T>& gain, double eps) {
  const Var<T> small = Tensor<T>({}, {static_cast<T>(eps)});
  return x / sqrt(mean(square(x), {-1}, true) + small) * gain;
}

}  // namespace

TEMPLATE_TEST_CASE("rms_norm is the formula it is said to be, gradients too", "[ops][rms_norm]",
                   float, double) {
  using T = TestType;
  constexpr double kClose = std::same_as<T, double> ? 1e-13 : 1e-5;
  for (const Index c : {1, 2, 7, 64, 65}) {
    CAPTURE(c);
    const std::vector<Tensor<T>> inputs = {random_tensor<T>({2, 70, c}, 1),
                                           random_tensor<T>({c}, 2)};
    const Pass<T> found = pass<T>([](const auto& v) { return rms_norm(v[0], v[1], 0.1); }, inputs);
    const Pass<double> plain = pass<double>([](const auto& v) { return composed(v[0], v[1], 0.1); },
                                            {as<double>(inputs[0]), as<double>(inputs[1])},
                                            as<double>(as<T>(projection({2, 70, c}))));
    CHECK(relative_gap(found.y, plain.y) < kClose);
    CHECK(relative_gap(found.d[0], plain.d[0]) < kClose);
    CHECK(relative_gap(found.d[1], plain.d[1]) < kClose);
  }
}

TEST_CASE("rms_norm of small rows, by hand", "[ops][rms_norm]") {
  const Var<double> x = Tensor<double>({2, 2}, {3, -1, 0, 0});
  const Var<double> gain = Tensor<double>({2}, {1, 2});
  const double root = std::sqrt(5 + 1e-5);
  const Tensor<double> right({2, 2}, {3 / root, -2 / root, 0, 0});
  CHECK(relative_gap(rms_norm(x, gain).value(), right) < 1e-15);
  const Tensor<double> plain({2, 2}, {3 / root, -1 / root, 0, 0});
  CHECK(relative_gap(rms_norm(x, {}).value(), plain) < 1e-15);
}

TEST_CASE("a row too large to square in float gives zeros", "[ops][rms_norm]") {
  const Tensor<float> x({2}, {1e30F, -1e30F});
  CHECK(relative_gap(rms_norm(Var<float>(x), {}).value(), Tensor<float>({2}, {0, 0})) == 0);
  CHECK(relative_gap(rms_norm(Var<double>(as<double>(x)), {}).value(),
                     Tensor<double>({2}, {1, -1})) < 1e-15);
}

TEST_CASE("rms_norm names the shapes that do not fit", "[ops][rms_norm][errors]") {
  const auto of = [](const Shape& s) { return Var<float>(Tensor<float>::zeros(s)); };
  CHECK_THROWS_WITH(rms_norm(of({2, 3}), of({4})), "rms_norm: input (2,3) and gain (4) do not fit");
  CHECK_THROWS_WITH(rms_norm(of({}), {}), "rms_norm: input () is not (..., C)");
  CHECK_THROWS_WITH(rms_norm(of({2, 0}), {}), "rms_norm: input (2,0) is not (..., C)");
}
