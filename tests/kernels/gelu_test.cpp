#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"
#include "support/catch.hpp"
#include "support/guarded.hpp"

using namespace headwise;
using test::for_each_row;
using test::Guarded;
using test::kEps;

namespace {

constexpr double kSqrt2OverPi = 0.79788456080286535588;

/// One of the two GELUs: the kernel, and y and dy/dx by the plain formula in double.
template <Real T>
struct Kind {
  std::string name;
  void (*kernel)(const T*, T*, T*, Index);
  double (*y)(double);
  double (*slope)(double);
};

double exact(double x) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }
double exact_slope(double x) {
  return 0.5 * (1 + std::erf(x / std::sqrt(2.0))) + x * kSqrt2OverPi / 2 * std::exp(-x * x / 2);
}
double by_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(kSqrt2OverPi * (x + 0.044715 * x * x * x)));
}
double by_tanh_slope(double x) {
  const double t = std::tanh(kSqrt2OverPi * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kSqrt2OverPi * (1 + 3 * 0.044715 * x * x);
}

template <Real T>
std::vector<Kind<T>> kinds() {
  return {{"exact", kernels::gelu_exact<T>, exact, exact_slope},
          {"tanh", kernels::gelu_tanh<T>, by_tanh, by_tanh_slope}};
}

/// The largest error as a share of what is allowed: 3e-7 in float (the fit and a few roundings), a
/// few roundings in double; times |x| where that is more than 1, as terms of both formulas are.
template <Real T>
double worst_share(const Guarded<T>& x, const Guarded<T>& y, double (*formula)(double)) {
  const double unit = sizeof(T) == 4 ? 3e-7 : 4 * kEps<T>;
  double worst = 0;
  for (Index i = 0; i < x.size(); ++i) {
    const auto at = static_cast<double>(x[i]);
    const double away = std::fabs(static_cast<double>(y[i]) - formula(at));
    if (!std::isfinite(away)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, away / (unit * std::max(1.0, std::fabs(at))));
  }
  return worst;
}

}  // namespace

TEMPLATE_TEST_CASE("gelu and its slope equal the plain formulas from -12 to 12", "[kernels]", float,
                   double) {
  using T = TestType;
  constexpr Index kSteps = 24 * 512 + 1;
  Guarded<T> x(kSteps, 0), y(kSteps, 0), slope(kSteps, 0);
  for (Index i = 0; i < kSteps; ++i) x[i] = static_cast<T>(static_cast<double>(i) / 512 - 12);
  for (const Kind<T>& kind : kinds<T>()) {
    CAPTURE(kind.name);
    kind.kernel(x.data(), y.data(), slope.data(), kSteps);
    CHECK(worst_share(x, y, kind.y) <= 1);
    CHECK(worst_share(x, slope, kind.slope) <= 1);
  }
}

TEMPLATE_TEST_CASE("gelu reads and writes its row and nothing else", "[kernels]", float, double) {
  using T = TestType;
  Rng rng(1);
  for (const Kind<T>& kind : kinds<T>())
    for_each_row([&](Index n, Index offset) {
      CAPTURE(kind.name, n, offset);
      Guarded<T> x(n, offset), y(n, (offset * 3 + 1) % 16), slope(n, (offset * 5 + 2) % 16);
      x.fill(rng, 2);
      kind.kernel(x.data(), y.data(), slope.data(), n);
      REQUIRE(worst_share(x, y, kind.y) <= 1);
      REQUIRE(worst_share(x, slope, kind.slope) <= 1);
      REQUIRE((x.intact() && y.intact() && slope.intact()));

      Guarded<T> alone(n, (offset * 7 + 3) % 16);
      kind.kernel(x.data(), alone.data(), nullptr, n);
      REQUIRE(test::same_bits(alone, y));
      REQUIRE((x.intact() && alone.intact()));
    });
}

TEMPLATE_TEST_CASE("gelu far from zero is x or nothing", "[kernels]", float, double) {
  using T = TestType;
  for (const Kind<T>& kind : kinds<T>())
    for (const T far : {T(50), T(100), T(1e4), T(1e6), T(1e12)}) {
      CAPTURE(kind.name, far);
      const Guarded<T> x{far, -far, 0};
      Guarded<T> y(3, 0), slope(3, 0);
      kind.kernel(x.data(), y.data(), slope.data(), 3);
      CHECK((y[0] == far && slope[0] == 1));
      CHECK((y[1] == 0 && slope[1] == 0));
      CHECK((y[2] == 0 && slope[2] == T(0.5)));
    }
}

TEMPLATE_TEST_CASE("gelu shows a NaN where there is one", "[kernels]", float, double) {
  using T = TestType;
  Rng rng(2);
  for (const Kind<T>& kind : kinds<T>())
    for (Index n = 1; n <= 67; ++n)
      for (Index at = 0; at < n; ++at) {
        CAPTURE(kind.name, n, at);
        Guarded<T> x(n, at % 16), y(n, n % 16), slope(n, 0);
        x.fill(rng);
        x[at] = std::numeric_limits<T>::quiet_NaN();
        kind.kernel(x.data(), y.data(), slope.data(), n);
        REQUIRE(test::all_of(y, [&](Index i) { return std::isnan(y[i]) == (i == at); }));
        REQUIRE(test::all_of(slope, [&](Index i) { return std::isnan(slope[i]) == (i == at); }));
      }
}
