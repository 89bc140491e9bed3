#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/kernels.hpp"
#include "support/catch.hpp"
#include "support/guarded.hpp"

using namespace headwise;
using test::for_each_row;
using test::gap;
using test::Guarded;

namespace {

/// The coefficients of step t at a learning rate, as the optimiser works them out.
template <Real T>
kernels::AdamwStep<T> coefficients(double lr, double decay, double beta1, double beta2, int t,
                                   double grad_scale = 1) {
  kernels::AdamwStep<T> s{};
  s.grad_scale = static_cast<T>(grad_scale);
  s.beta1 = static_cast<T>(beta1);
  s.beta2 = static_cast<T>(beta2);
  s.eps = T(1e-8);
  s.keep = static_cast<T>(1 - lr * decay);
  s.rate = static_cast<T>(lr / (1 - std::pow(beta1, t)));
  s.unbias2 = static_cast<T>(1 / (1 - std::pow(beta2, t)));
  return s;
}

/// Gradients, moments and parameters of n elements, and one update of them by the plain formula.
template <Real T>
struct Weights {
  Weights(Index n, Index offset, Rng& rng)
      : g(n, offset),
        m(n, (offset * 3 + 1) % 16),
        v(n, (offset * 5 + 2) % 16),
        p(n, (offset * 7 + 3) % 16) {
    g.fill(rng);
    m.fill(rng, 0.3);
    p.fill(rng);
    for (Index i = 0; i < n; ++i) v[i] = static_cast<T>(std::fabs(rng.normal()));
  }

  void update(const kernels::AdamwStep<T>& s) {
    const auto wide = [](T x) { return static_cast<double>(x); };
    const double beta1 = wide(s.beta1), beta2 = wide(s.beta2);
    for (Index i = 0; i < g.size(); ++i) {
      const double up = wide(g[i]) * wide(s.grad_scale);
      want_m.push_back(beta1 * wide(m[i]) + (1 - beta1) * up);
      want_v.push_back(beta2 * wide(v[i]) + (1 - beta2) * up * up);
      const double size = std::sqrt(wide(s.unbias2) * want_v.back()) + wide(s.eps);
      want_p.push_back(wide(s.keep) * wide(p[i]) - wide(s.rate) * want_m.back() / size);
    }
    kernels::adamw(s, g.data(), m.data(), v.data(), p.data(), g.size());
  }
  /// The largest error of m, v and p, in units of what they are about.
  [[nodiscard]] double worst() const {
    return std::max({gap(m, want_m, 1), gap(v, want_v, 1), gap(p, want_p, 4)});
  }
  [[nodiscard]] bool intact() const { return g.intact() && m.intact() && v.intact() && p.intact(); }

  Guarded<T> g, m, v, p;
  std::vector<double> want_m, want_v, want_p;
};

}  // namespace

TEMPLATE_TEST_CASE("adamw equals the plain formula", "[kernels]", float, double) {
  using T = TestType;
  Rng rng(1);
  const auto step = coefficients<T>(0.1, 0.1, 0.9, 0.99, 3, 0.7);
  for_each_row([&](Index n, Index offset) {
    CAPTURE(n, offset);
    Weights<T> w(n, offset, rng);
    w.update(step);
    REQUIRE(w.worst() <= 4);
    REQUIRE(w.intact());
  });
  for (const Index n : {1023, 1024, 1025, 2048, 3001}) {  // long runs are done in pieces
    CAPTURE(n);
    Weights<T> w(n, 5, rng);
    w.update(step);
    CHECK(w.worst() <= 4);
    CHECK(w.intact());
  }
}

TEMPLATE_TEST_CASE("adamw decays before it steps", "[kernels]", float, double) {
  using T = TestType;
  // Decay last would give 0.8910000020, Adam with L2 0.9000000017.
  T p = 1, m = 0, v = 0, g = T(0.5);
  const double margin = sizeof(T) == 4 ? 1e-6 : 6e-11;
  kernels::adamw(coefficients<T>(0.1, 0.1, 0.9, 0.999, 1), &g, &m, &v, &p, 1);
  CHECK(std::fabs(static_cast<double>(p) - 0.8900000020) < margin);
  g = T(-0.25);
  kernels::adamw(coefficients<T>(0.1, 0.1, 0.9, 0.999, 2), &g, &m, &v, &p, 1);
  CHECK(std::fabs(static_cast<double>(p) - 0.8544662987) < margin);
}

TEMPLATE_TEST_CASE("adamw of no gradient only decays and of a NaN stays where it is", "[kernels]",
                   float, double) {
  using T = TestType;
  const auto step = coefficients<T>(0.1, 0.1, 0.9, 0.999, 1);
  constexpr Index n = 37, at = 20;
  Guarded<T> g(n, 0), m(n, 0), v(n, 0), p(n, 0);
  p.fill(T(2));
  g[at] = std::numeric_limits<T>::quiet_NaN();
  kernels::adamw(step, g.data(), m.data(), v.data(), p.data(), n);
  const T kept = step.keep * T(2);
  CHECK(test::all_of(p, [&](Index i) { return i == at ? std::isnan(p[i]) : p[i] == kept; }));
  CHECK(test::all_of(m, [&](Index i) { return i == at ? std::isnan(m[i]) : m[i] == 0; }));
}

TEMPLATE_TEST_CASE("sums are the plain sums in double", "[kernels]", float, double) {
  using T = TestType;
  Rng rng(2);
  for_each_row([&](Index n, Index offset) {
    CAPTURE(n, offset);
    Guarded<T> x(n, offset);
    x.fill(rng);
    double sum = 0, squares = 0, size = 0;
    for (Index i = 0; i < n; ++i) {
      const auto v = static_cast<double>(x[i]);
      sum += v, squares += v * v, size += std::fabs(v);
    }
    REQUIRE(std::fabs(kernels::sum(x.data(), n) - sum) <= 1e-14 * size);
    REQUIRE(std::fabs(kernels::sum_squares(x.data(), n) - squares) <= 1e-14 * squares);
    REQUIRE(x.intact());
  });
  CHECK(kernels::sum<T>(nullptr, 0) == 0);
  CHECK(kernels::sum_squares<T>(nullptr, 0) == 0);
}

TEMPLATE_TEST_CASE("ones beside a hundred million are counted", "[kernels]", float, double) {
  using T = TestType;
  constexpr Index kOnes = 5000;  // a float of 1e8 does not notice one of them
  Guarded<T> x(kOnes + 1, 0);
  x.fill(T(1));
  for (const Index at : {Index{0}, Index{3}, kOnes / 2, kOnes}) {
    x[at] = T(1e8);
    CHECK(kernels::sum(x.data(), x.size()) == 1e8 + kOnes);
    x[at] = T(1e4);
    CHECK(kernels::sum_squares(x.data(), x.size()) == 1e8 + kOnes);
    x[at] = 1;
  }
}

TEMPLATE_TEST_CASE("squares too large for the type are summed in double", "[kernels]", float,
                   double) {
  using T = TestType;
  Guarded<T> x(19, 0);
  x.fill(T(1e20));  // its square is infinite in float
  CHECK(kernels::sum_squares(x.data(), 19) == Approx(19e40).epsilon(1e-6));
}

TEMPLATE_TEST_CASE("a NaN anywhere reaches the sums", "[kernels]", float, double) {
  using T = TestType;
  for (Index n = 1; n <= 67; ++n)
    for (Index at = 0; at < n; ++at) {
      CAPTURE(n, at);
      Guarded<T> x(n, at % 16);
      x[at] = std::numeric_limits<T>::quiet_NaN();
      REQUIRE(std::isnan(kernels::sum(x.data(), n)));
      REQUIRE(std::isnan(kernels::sum_squares(x.data(), n)));
    }
}

TEMPLATE_TEST_CASE("add and multiply are exact element by element", "[kernels]", float, double) {
  using T = TestType;
  Rng rng(3);
  for_each_row([&](Index n, Index offset) {
    CAPTURE(n, offset);
    Guarded<T> a(n, offset), b(n, (offset * 3 + 1) % 16), y(n, (offset * 5 + 2) % 16);
    a.fill(rng);
    b.fill(rng);
    kernels::multiply(a.data(), b.data(), y.data(), n);
    REQUIRE(test::all_of(y, [&](Index i) { return y[i] == a[i] * b[i]; }));

    Guarded<T> before(n, 0);
    before.copy(b);
    kernels::add(a.data(), b.data(), n);
    REQUIRE(test::all_of(b, [&](Index i) { return b[i] == before[i] + a[i]; }));

    before.copy(a);
    kernels::multiply(a.data(), b.data(), a.data(), n);  // the result over a factor
    REQUIRE(test::all_of(a, [&](Index i) { return a[i] == before[i] * b[i]; }));
    REQUIRE((a.intact() && b.intact() && y.intact()));
  });
}

TEMPLATE_TEST_CASE("one element anywhere that is not finite is found", "[kernels]", float, double) {
  using T = TestType;
  constexpr T kMost = std::numeric_limits<T>::max(), kInfinity = std::numeric_limits<T>::infinity();
  for (Index n = 1; n <= 67; ++n) {
    Guarded<T> x(3 * n, n % 16);
    x.fill(kMost);  // finite, though no sum of two is
    const auto finite = [&](Index rows, Index cols) {
      return kernels::all_finite(Mat<const T>{x.data(), rows, cols, n});
    };
    REQUIRE(finite(3, n));
    for (Index at = 0; at < 3 * n; ++at)
      for (const T odd : {std::numeric_limits<T>::quiet_NaN(), kInfinity, -kInfinity}) {
        CAPTURE(n, at, odd);
        x[at] = odd;
        REQUIRE_FALSE(finite(3, n));
        REQUIRE(finite(at / n, n));  // the rows before it
        REQUIRE(finite(3, at % n));  // the columns before it
        x[at] = -kMost;
      }
    REQUIRE(x.intact());
  }
  CHECK(kernels::all_finite(Mat<const T>{}));
}

TEMPLATE_TEST_CASE("adamw tells when a weight or a second moment is not finite", "[kernels]", float,
                   double) {
  using T = TestType;
  const auto step = coefficients<T>(0.1, 0.1, 0.9, 0.999, 1);
  for (Index n = 1; n <= 67; ++n)
    for (Index at = 0; at < n; ++at)
      for (const T odd : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                          std::numeric_limits<T>::max()}) {
        CAPTURE(n, at, odd);
        Guarded<T> g(n, 0), m(n, 0), v(n, 0), p(n, 0);
        p.fill(std::numeric_limits<T>::max());
        const auto update = [&] {
          return kernels::adamw(step, g.data(), m.data(), v.data(), p.data(), n);
        };
        REQUIRE(update());
        g[at] = odd;  // of the largest number the square is none: v is infinite, and p stands still
        REQUIRE_FALSE(update());
      }
}
