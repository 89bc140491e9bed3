// A NaN or an infinity at each place of a row gives what the plain formula gives: kernels that
// swallow one hide a broken run.
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"
#include "support/catch.hpp"
#include "support/guarded.hpp"
#include "support/numbers.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

using Row = std::vector<double>;

/// A kernel of up to three rows that are read, and the same by its formula in double. The odd value
/// goes into the first row.
template <Real T>
struct Odd {
  std::string name;
  std::function<void(const T* a, const T* b, const T* c, T* y, Index n)> kernel;
  std::function<Row(const Row& a, const Row& b, const Row& c)> plain;
};

template <class F>
Row each(std::size_t n, F f) {
  Row y;
  for (std::size_t i = 0; i < n; ++i) y.push_back(f(i));
  return y;
}

template <class F>
double total(std::size_t n, F f) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += f(i);
  return sum;
}

Row softmax_backward(const Row& dp, const Row& p) {
  const double dot = total(p.size(), [&](std::size_t i) { return p[i] * dp[i]; });
  return each(p.size(), [&](std::size_t i) { return p[i] * (dp[i] - dot); });
}

/// The gradient with respect to x = b, whose mean is 0 and rstd 1, for dy = a and gain c.
Row norm_backward(const Row& dy, const Row& x, const Row& gain) {
  const auto n = static_cast<double>(x.size());
  const double g = total(x.size(), [&](std::size_t i) { return dy[i] * gain[i]; }) / n;
  const double gx = total(x.size(), [&](std::size_t i) { return dy[i] * gain[i] * x[i]; }) / n;
  return each(x.size(), [&](std::size_t i) { return dy[i] * gain[i] - g - x[i] * gx; });
}

/// AdamW's first step from zero moments with gradient a, on weights b.
template <Real T>
constexpr kernels::AdamwStep<T> kStep{T(1), T(0.5), T(0.5), T(1e-3), T(1), T(0.1), T(2)};

template <Real T>
std::vector<Odd<T>> kernels_to_try() {
  const auto copy = [](const T* from, T* to, Index n) { std::copy_n(from, n, to); };
  return {{"add",
           [=](const T* a, const T* b, const T*, T* y, Index n) {
             copy(b, y, n);
             kernels::add(a, y, n);
           },
           [](const Row& a, const Row& b, const Row&) {
             return each(a.size(), [&](std::size_t i) { return a[i] + b[i]; });
           }},
          {"multiply",
           [](const T* a, const T* b, const T*, T* y, Index n) { kernels::multiply(a, b, y, n); },
           [](const Row& a, const Row& b, const Row&) {
             return each(a.size(), [&](std::size_t i) { return a[i] * b[i]; });
           }},
          {"softmax backward",
           [=](const T* a, const T* b, const T*, T* y, Index n) {
             copy(a, y, n);
             kernels::softmax_backward(b, y, n);
           },
           [](const Row& a, const Row& b, const Row&) { return softmax_backward(a, b); }},
          {"exp minus",
           [](const T* a, const T*, const T*, T* y, Index n) {
             kernels::exp_minus(a, 0.5, T(2), y, n);
           },
           [](const Row& a, const Row&, const Row&) {
             return each(a.size(), [&](std::size_t i) { return 2 * std::exp(a[i] - 0.5); });
           }},
          {"layer norm backward",
           [](const T* a, const T* b, const T* c, T* y, Index n) {
             kernels::layer_norm_backward<T>(b, {T(0), T(0), T(1)}, c, a, T(0), y, nullptr, n);
           },
           norm_backward},
          {"adamw",
           [=](const T* a, const T* b, const T*, T* y, Index n) {
             std::vector<T> m(static_cast<std::size_t>(n)), v(m);
             copy(b, y, n);
             kernels::adamw(kStep<T>, a, m.data(), v.data(), y, n);
           },
           [](const Row& a, const Row& b, const Row&) {
             return each(a.size(), [&](std::size_t i) {
               const double size = std::sqrt(2 * 0.5 * a[i] * a[i]) + 1e-3;
               return b[i] - 0.1 * 0.5 * a[i] / size;
             });
           }},
          {"sum",
           [](const T* a, const T*, const T*, T* y, Index n) {
             std::fill_n(y, n, static_cast<T>(kernels::sum(a, n)));
           },
           [](const Row& a, const Row&, const Row&) {
             const double sum = total(a.size(), [&](std::size_t i) { return a[i]; });
             return Row(a.size(), sum);
           }},
          {"sum of squares",
           [](const T* a, const T*, const T*, T* y, Index n) {
             std::fill_n(y, n, static_cast<T>(kernels::sum_squares(a, n)));
           },
           [](const Row& a, const Row&, const Row&) {
             const double sum = total(a.size(), [&](std::size_t i) { return a[i] * a[i]; });
             return Row(a.size(), sum);
           }}};
}

template <Real T>
Row as_row(const Guarded<T>& x) {
  return {x.data(), x.data() + x.size()};
}

/// Whether y is what `plain` says: the same infinities, NaN just where it has one, numbers close.
template <Real T>
bool agrees(const Guarded<T>& y, const Row& plain) {
  const double close = sizeof(T) == 4 ? 1e-5 : 1e-12;
  for (Index i = 0; i < y.size(); ++i) {
    const double found = static_cast<double>(y[i]), want = plain[static_cast<std::size_t>(i)];
    if (std::isnan(want) != std::isnan(found)) return false;
    if (std::isinf(want) ? found != want : std::fabs(found - want) > close * (20 + std::fabs(want)))
      return false;
  }
  return true;
}

}  // namespace

TEMPLATE_TEST_CASE("an odd value at each place gives what the formula gives", "[kernels]", float,
                   double) {
  using T = TestType;
  Rng rng(6);
  for (const Odd<T>& odd : kernels_to_try<T>())
    for (Index n = 1; n <= 67; ++n) {
      Guarded<T> a(n, n % 16), b(n, (n * 3 + 1) % 16), c(n, (n * 5 + 2) % 16);
      Guarded<T> y(n, (n * 7 + 3) % 16);
      a.fill(rng), b.fill(rng), c.fill(rng);
      for (Index at = 0; at < n; ++at)
        for (const double value : {kNaN, kInf, -kInf}) {
          const T before = a[at];
          a[at] = static_cast<T>(value);
          y.fill(T(0));
          odd.kernel(a.data(), b.data(), c.data(), y.data(), n);
          CAPTURE(odd.name, n, at, value);
          REQUIRE(agrees(y, odd.plain(as_row(a), as_row(b), as_row(c))));
          REQUIRE(y.intact());
          a[at] = before;
        }
    }
}

TEMPLATE_TEST_CASE("an infinity anywhere makes the whole normed row NaN", "[kernels]", float,
                   double) {
  using T = TestType;
  Rng rng(7);
  for (Index n = 1; n <= 67; ++n)
    for (Index at = 0; at < n; ++at)
      for (const double value : {kInf, -kInf}) {
        Guarded<T> x(n, (n + at) % 16), y(n, at % 16);
        x.fill(rng);
        x[at] = static_cast<T>(value);
        kernels::layer_norm<T>(x.data(), nullptr, nullptr, T(1e-5), y.data(), n);
        CAPTURE(n, at, value);
        REQUIRE(agrees(y, Row(static_cast<std::size_t>(n), kNaN)));
      }
}

TEMPLATE_TEST_CASE("gelu of an infinity is its limit, at each place", "[kernels]", float, double) {
  using T = TestType;
  for (const auto kernel : {kernels::gelu_exact<T>, kernels::gelu_tanh<T>})
    for (Index n = 1; n <= 67; ++n)
      for (Index at = 0; at < n; ++at) {
        Guarded<T> x(n, (n + at) % 16), y(n, at % 16), slope(n, n % 16);
        x[at] = static_cast<T>(kInf);
        kernel(x.data(), y.data(), slope.data(), n);
        CAPTURE(n, at);
        REQUIRE(y[at] == static_cast<T>(kInf));
        x[at] = static_cast<T>(-kInf);
        kernel(x.data(), y.data(), slope.data(), n);
        REQUIRE((y[at] == 0 || std::isnan(y[at])));  // -inf times 0, or its limit: never a number
        for (Index i = 0; i < n; ++i) REQUIRE((i == at || y[i] == 0));
      }
}
