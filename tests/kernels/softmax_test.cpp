#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/kernels.hpp"
#include "support/catch.hpp"
#include "support/guarded.hpp"
#include "support/numbers.hpp"

using namespace headwise;
using namespace headwise::test;
using test::for_each_row;
using test::gap;
using test::Guarded;
using test::kEps;

namespace {

/// log sum exp(x), and the softmax from it, in double.
template <Real T>
double plain_lse(const Guarded<T>& x) {
  double max = -kInf, sum = 0;
  for (Index i = 0; i < x.size(); ++i) max = std::max(max, static_cast<double>(x[i]));
  for (Index i = 0; i < x.size(); ++i) sum += std::exp(static_cast<double>(x[i]) - max);
  return max + std::log(sum);
}
template <Real T>
std::vector<double> plain_softmax(const Guarded<T>& x) {
  const double lse = plain_lse(x);
  std::vector<double> p;
  for (Index i = 0; i < x.size(); ++i) p.push_back(std::exp(static_cast<double>(x[i]) - lse));
  return p;
}

template <Real T>
T largest(const Guarded<T>& x) {
  return *std::max_element(x.data(), x.data() + x.size());
}

// An exponential, a sum of up to 17 in a lane, a quotient and a product round about once each.
constexpr double kSoftmaxUnits = 8;

}  // namespace

TEMPLATE_TEST_CASE("softmax equals the plain formula", "[kernels]", float, double) {
  using T = TestType;
  Rng rng(1);
  for_each_row([&](Index n, Index offset) {
    CAPTURE(n, offset);
    Guarded<T> x(n, offset);
    x.fill(rng, 3);
    const auto want = plain_softmax(x);
    const T max = largest(x);
    const double lse = plain_lse(x);
    const auto stats = kernels::softmax(x.data(), n);
    REQUIRE(gap(x, want) <= kSoftmaxUnits);
    REQUIRE(x.intact());
    REQUIRE(stats.max == max);
    REQUIRE(static_cast<double>(stats.inverse) ==
            Approx(std::exp(static_cast<double>(max) - lse)).epsilon(kSoftmaxUnits * kEps<T>));
    double sum = 0;
    for (Index i = 0; i < n; ++i) sum += static_cast<double>(x[i]);
    REQUIRE(std::fabs(sum - 1) <= kSoftmaxUnits * kEps<T>);
  });
}

TEMPLATE_TEST_CASE("softmax of huge and of very negative scores is finite", "[kernels]", float,
                   double) {
  using T = TestType;
  Guarded<T> x{T(7999.99), 8000, 2, 1};  // the first rounds to 7999.990234 in float
  kernels::softmax(x.data(), 4);
  const double first = sizeof(T) == 4 ? 0.4975586 : 0.4975000;
  CHECK(std::fabs(static_cast<double>(x[0]) - first) < 1e-7);
  CHECK(std::fabs(static_cast<double>(x[1]) - (1 - first)) < 1e-7);
  CHECK(x[2] == 0);
  CHECK(x[3] == 0);

  for (const T far : {T(-1000), T(-1e30), std::numeric_limits<T>::lowest(), T(1e30),
                      std::numeric_limits<T>::max()}) {
    CAPTURE(far);
    Guarded<T> equal{far, far};
    kernels::softmax(equal.data(), 2);
    CHECK(equal[0] == T(0.5));
    CHECK(equal[1] == T(0.5));
  }
  Guarded<T> whole{std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max()};
  kernels::softmax(whole.data(), 2);  // their difference is infinite
  CHECK(whole[0] == 0);
  CHECK(whole[1] == 1);
}

TEMPLATE_TEST_CASE("a NaN or an infinite score anywhere makes the whole row NaN", "[kernels]",
                   float, double) {
  using T = TestType;
  Rng rng(2);
  for (const T odd : {static_cast<T>(kNaN), static_cast<T>(-kNaN), static_cast<T>(kInf)})
    for (Index n = 1; n <= 67; ++n)
      for (Index at = 0; at < n; ++at) {
        CAPTURE(odd, n, at);
        Guarded<T> x(n, at % 16), again(n, n % 16);
        x.fill(rng);
        x[at] = odd;
        again.copy(x);
        REQUIRE(std::isnan(kernels::log_sum_exp(x.data(), n)));
        const auto stats = kernels::softmax(x.data(), n);
        kernels::softmax_again(again.data(), n, stats);
        REQUIRE(test::all_of(x, [&](Index i) { return std::isnan(x[i]) && std::isnan(again[i]); }));
        REQUIRE(std::isnan(stats.max));
        REQUIRE((x.intact() && again.intact()));
      }
}

TEMPLATE_TEST_CASE("a row with nothing allowed becomes zeros", "[kernels]", float, double) {
  using T = TestType;
  for_each_row([&](Index n, Index offset) {
    CAPTURE(n, offset);
    Guarded<T> x(n, offset);
    x.fill(static_cast<T>(-kInf));
    REQUIRE(kernels::log_sum_exp(x.data(), n) == -kInf);
    const auto stats = kernels::softmax(x.data(), n);
    REQUIRE(test::all_of(x, [&](Index i) { return x[i] == 0; }));
    REQUIRE(stats.max == static_cast<T>(-kInf));
    REQUIRE(stats.inverse == 0);

    x.fill(static_cast<T>(-kInf));
    kernels::softmax_again(x.data(), n, stats);
    REQUIRE(test::all_of(x, [&](Index i) { return x[i] == 0; }));
    REQUIRE(x.intact());
  });
}

TEMPLATE_TEST_CASE("what is not allowed gets nothing and changes nothing", "[kernels]", float,
                   double) {
  using T = TestType;
  Rng rng(3);
  for (Index n = 1; n <= 67; ++n)
    for (Index only = 0; only < n; ++only) {
      CAPTURE(n, only);
      Guarded<T> x(n, only % 16);
      x.fill(rng);
      for (Index i = 0; i < n; ++i)
        if (i != only && rng.below(2) == 0) x[i] = static_cast<T>(-kInf);
      const auto want = plain_softmax(x);
      kernels::softmax(x.data(), n);
      REQUIRE(gap(x, want) <= kSoftmaxUnits);
      REQUIRE(test::all_of(
          x, [&](Index i) { return (want[static_cast<std::size_t>(i)] == 0) == (x[i] == 0); }));
    }
}

TEMPLATE_TEST_CASE("softmax again gives the same bits", "[kernels]", float, double) {
  using T = TestType;
  Rng rng(4);
  for_each_row([&](Index n, Index offset) {
    CAPTURE(n, offset);
    Guarded<T> x(n, offset), again(n, (offset * 7 + 3) % 16);
    x.fill(rng, 5);
    if (n > 3) x[n / 2] = static_cast<T>(-kInf);
    again.copy(x);
    const auto stats = kernels::softmax(x.data(), n);
    kernels::softmax_again(again.data(), n, stats);
    REQUIRE(test::same_bits(x, again));
    REQUIRE(again.intact());
  });
}

TEMPLATE_TEST_CASE("softmax backward equals the plain formula", "[kernels]", float, double) {
  using T = TestType;
  Rng rng(5);
  for_each_row([&](Index n, Index offset) {
    CAPTURE(n, offset);
    Guarded<T> p(n, offset), dp(n, (offset * 5 + 1) % 16);
    p.fill(rng);
    kernels::softmax(p.data(), n);
    dp.fill(rng);
    double dot = 0, most = 0;
    for (Index i = 0; i < n; ++i) dot += static_cast<double>(p[i]) * static_cast<double>(dp[i]);
    std::vector<double> want;
    for (Index i = 0; i < n; ++i) {
      want.push_back(static_cast<double>(p[i]) * (static_cast<double>(dp[i]) - dot));
      most = std::max(most, std::fabs(static_cast<double>(dp[i])));
    }
    kernels::softmax_backward(p.data(), dp.data(), n);
    // p sums to one, so nothing here is larger than dp; dp - dot may cancel.
    REQUIRE(gap(dp, want, most) <= kSoftmaxUnits);
    REQUIRE((p.intact() && dp.intact()));
  });
}

TEMPLATE_TEST_CASE("log sum exp equals the plain formula", "[kernels]", float, double) {
  using T = TestType;
  Rng rng(6);
  for_each_row([&](Index n, Index offset) {
    CAPTURE(n, offset);
    Guarded<T> x(n, offset);
    x.fill(rng, 3);
    // The sum is right to a few units of T, and so its logarithm to as many absolutely.
    REQUIRE(std::fabs(kernels::log_sum_exp(x.data(), n) - plain_lse(x)) <= kSoftmaxUnits * kEps<T>);
    REQUIRE(x.intact());
  });
  for (const T far : {T(-1000), T(1000), T(8192)}) {
    const Guarded<T> x{far, far, static_cast<T>(-kInf)};
    CHECK(kernels::log_sum_exp(x.data(), 3) ==
          Approx(static_cast<double>(far) + std::log(2.0)).epsilon(1e-14));
  }
}

TEMPLATE_TEST_CASE("exp minus equals the plain formula", "[kernels]", float, double) {
  using T = TestType;
  Rng rng(7);
  for (const double mean : {0.0, 1000.0})  // where lse has digits that a float does not
    for_each_row([&](Index n, Index offset) {
      CAPTURE(mean, n, offset);
      Guarded<T> x(n, offset), dx(n, (offset * 3 + 2) % 16);
      x.fill(rng, 3, mean);
      const double lse = plain_lse(x);
      const T scale = T(-0.375);
      auto want = plain_softmax(x);
      for (double& w : want) w *= static_cast<double>(scale);
      kernels::exp_minus(x.data(), lse, scale, dx.data(), n);
      REQUIRE(gap(dx, want) <= kSoftmaxUnits);
      REQUIRE((x.intact() && dx.intact()));
    });
}

TEMPLATE_TEST_CASE("exp minus shows a NaN where there is one", "[kernels]", float, double) {
  using T = TestType;
  Rng rng(8);
  for (Index n = 1; n <= 67; ++n) {
    CAPTURE(n);
    Guarded<T> x(n, n % 16), dx(n, 0);
    x.fill(rng);
    const Index at = n / 2;
    x[at] = static_cast<T>(kNaN);
    kernels::exp_minus(x.data(), 0.0, T(1), dx.data(), n);
    REQUIRE(test::all_of(dx, [&](Index i) { return std::isnan(dx[i]) == (i == at); }));

    x[at] = 0;  // what log_sum_exp answers for a row with a NaN poisons the gradient's row
    kernels::exp_minus(x.data(), kNaN, T(1), dx.data(), n);
    REQUIRE(test::all_of(dx, [&](Index i) { return std::isnan(dx[i]); }));
  }
}
