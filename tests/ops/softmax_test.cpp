// softmax and log_softmax over the last axis, where numbers are large, infinite or missing too.
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
constexpr T kInfinity = std::numeric_limits<T>::infinity();

template <Real T>
const Function<T> kSoftmax = [](const auto& v) { return softmax(v[0]); };
template <Real T>
const Function<T> kLogSoftmax = [](const auto& v) { return log_softmax(v[0]); };

/// All finite, and zero.
template <Real T>
bool all_zero(const Tensor<T>& x) {
  return std::all_of(x.values().begin(), x.values().end(), [](T v) { return v == 0; });
}
template <Real T>
bool all_nan(const Tensor<T>& x) {
  return std::all_of(x.values().begin(), x.values().end(), [](T v) { return std::isnan(v); });
}

}  // namespace

TEMPLATE_TEST_CASE("softmax and its logarithm equal plain loops, gradients too", "[ops][softmax]",
                   float, double) {
  using T = TestType;
  constexpr double kClose = std::same_as<T, double> ? 1e-14 : 1e-6;
  for (Index c = 1; c <= 40; ++c) {
    CAPTURE(c);
    const Tensor<T> x = random_tensor<T>({2, 3, c}, 1), dy = random_tensor<T>({2, 3, c}, 2);
    Tensor<double> p = as<double>(x), log_p = p, dx = p, dlog = p;
    const Tensor<double> in = p, up = as<double>(dy);
    for (Index r = 0; r < 6; ++r) {
      double total = 0, inner = 0, sum_up = 0;
      for (Index i = r * c; i < (r + 1) * c; ++i) total += std::exp(in.data()[i]);
      for (Index i = r * c; i < (r + 1) * c; ++i) {
        p.data()[i] = std::exp(in.data()[i]) / total;
        log_p.data()[i] = in.data()[i] - std::log(total);
        inner += p.data()[i] * up.data()[i];
        sum_up += up.data()[i];
      }
      for (Index i = r * c; i < (r + 1) * c; ++i) {
        dx.data()[i] = p.data()[i] * (up.data()[i] - inner);
        dlog.data()[i] = up.data()[i] - p.data()[i] * sum_up;
      }
    }
    const Pass<T> soft = pass<T>(kSoftmax<T>, {x}, dy), logs = pass<T>(kLogSoftmax<T>, {x}, dy);
    CHECK(relative_gap(soft.y, p) < kClose);
    CHECK(relative_gap(soft.d[0], dx, 1) < kClose);  // of one element it is zero but for rounding
    CHECK(relative_gap(logs.y, log_p, 1) < kClose);
    CHECK(relative_gap(logs.d[0], dlog, 1) < kClose);
  }
}

TEST_CASE("softmax does not overflow", "[ops][softmax]") {
  const Tensor<double> x({4}, {7999.99, 8000, 2, 1}), right({4}, {0.4975000, 0.5025000, 0, 0});
  CHECK(relative_gap(softmax(Var<double>(x)).value(), right) < 1e-6);
  const Tensor<float> single({4}, {0.4975586F, 0.5024414F, 0, 0});
  CHECK(relative_gap(softmax(Var<float>(as<float>(x))).value(), single) < 1e-6);
  const Tensor<double> low({2}, {-1000, -1000}), half({2}, {0.5, 0.5});
  CHECK(same_bits(softmax(Var<double>(low)).value(), half));
  CHECK(relative_gap(log_softmax(Var<double>(low)).value(),
                     Tensor<double>::full({2}, -std::log(2.0))) < 1e-12);
  const Tensor<double> logs = log_softmax(Var<double>(x)).value();
  CHECK(std::fabs(logs.data()[2] - (2 - 8000 - std::log1p(std::exp(-0.01)))) < 1e-11);
}

TEMPLATE_TEST_CASE("a row of nothing but -inf gives zeros and no gradient", "[ops][softmax]", float,
                   double) {
  using T = TestType;
  const Tensor<T> x = Tensor<T>::full({1, 3}, -kInfinity<T>);
  const Pass<T> soft = pass<T>(kSoftmax<T>, {x}), logs = pass<T>(kLogSoftmax<T>, {x});
  CHECK(all_zero(soft.y));
  CHECK(all_zero(soft.d[0]));
  CHECK(same_bits(logs.y, x));
  CHECK(all_zero(logs.d[0]));
}

TEMPLATE_TEST_CASE("a single -inf is a probability of 0, with no gradient through softmax",
                   "[ops][softmax]", float, double) {
  using T = TestType;
  const Tensor<T> x({1, 3}, {0, -kInfinity<T>, 0}), dy({1, 3}, {1, 2, 4});
  const Pass<T> soft = pass<T>(kSoftmax<T>, {x}, dy), logs = pass<T>(kLogSoftmax<T>, {x}, dy);
  CHECK(same_bits(soft.y, Tensor<T>({1, 3}, {T(0.5), 0, T(0.5)})));
  CHECK(relative_gap(soft.d[0], Tensor<T>({1, 3}, {T(-0.75), 0, T(0.75)})) < 1e-6);
  CHECK(logs.y.data()[1] == -kInfinity<T>);
  CHECK(relative_gap(logs.d[0], Tensor<T>({1, 3}, {T(-2.5), 2, T(0.5)})) < 1e-6);
}

TEMPLATE_TEST_CASE("a NaN or +inf makes its whole row NaN, and no other", "[ops][softmax]", float,
                   double) {
  using T = TestType;
  for (const T bad : {std::numeric_limits<T>::quiet_NaN(), kInfinity<T>})
    for (const Function<T>& f : {kSoftmax<T>, kLogSoftmax<T>}) {
      const Pass<T> found = pass<T>(f, {Tensor<T>({2, 3}, {1, bad, 2, 1, 2, 3})});
      const auto row = [](const Tensor<T>& x, Index i) {
        return slice(Var<T>(x), 0, i, i + 1).value();
      };
      CHECK(all_nan(row(found.y, 0)));
      CHECK(all_nan(row(found.d[0], 0)));
      CHECK_FALSE(std::isnan(sum(Var<T>(row(found.y, 1))).item()));
      CHECK_FALSE(std::isnan(sum(Var<T>(row(found.d[0], 1))).item()));
    }
}

TEST_CASE("softmax takes rows, of no elements too", "[ops][softmax][errors]") {
  const Var<float> scalar = Tensor<float>::zeros({}), empty = Tensor<float>::zeros({2, 0});
  CHECK_THROWS_WITH(softmax(scalar), "softmax: input () is not (..., C)");
  CHECK_THROWS_WITH(log_softmax(scalar), "log_softmax: input () is not (..., C)");
  CHECK(softmax(empty).shape() == Shape{2, 0});
  CHECK(log_softmax(empty).shape() == Shape{2, 0});
}
