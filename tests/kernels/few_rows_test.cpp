#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "kernels/kernels.hpp"
#include "support/catch.hpp"
#include "support/guarded.hpp"

using namespace headwise;
using test::Guarded;

namespace {

/// y = x w^T of R rows, whose columns start where a line of memory does not.
template <Real T>
struct Product {
  Product(Index r, Index c, Index o, Index offset)
      : rows(r), cols(c), outputs(o), x(r * c, offset), w(o * c, (offset * 3 + 1) % 16) {}

  void fill(Rng& rng) { x.fill(rng), w.fill(rng); }

  /// The rows from `from` on, `n` of them, `gap` elements between the rows of y.
  [[nodiscard]] std::vector<T> run(Index from, Index n, Index gap = 0) const {
    const Index ld = outputs + gap;
    Guarded<T> y(n * ld - gap, 5);
    y.fill(T(-7));
    kernels::few_rows<T>({x.data() + from * cols, n, cols, cols}, {w.data(), outputs, cols, cols},
                         {y.data(), n, outputs, ld});
    REQUIRE((x.intact() && w.intact() && y.intact()));
    std::vector<T> found;
    for (Index i = 0; i < y.size(); ++i) {
      if (i % ld < outputs)
        found.push_back(y[i]);
      else
        REQUIRE(y[i] == T(-7));
    }
    return found;
  }

  /// The largest error, in units of the sum of what was added up.
  [[nodiscard]] double worst(const std::vector<T>& y) const {
    double most = 0;
    for (Index r = 0; r < rows; ++r)
      for (Index o = 0; o < outputs; ++o) {
        double want = 0, size = 0;
        for (Index i = 0; i < cols; ++i) {
          const double term =
              static_cast<double>(x[r * cols + i]) * static_cast<double>(w[o * cols + i]);
          want += term, size += std::fabs(term);
        }
        const double found = static_cast<double>(y[static_cast<std::size_t>(r * outputs + o)]);
        const double away = std::fabs(found - want) / size;
        most = std::isnan(away) ? std::numeric_limits<double>::infinity() : std::max(most, away);
      }
    return most;
  }

  Index rows, cols, outputs;
  Guarded<T> x, w;
};

template <Real T>
constexpr double kClose = sizeof(T) == 4 ? 1e-6 : 2e-15;

}  // namespace

TEMPLATE_TEST_CASE("few_rows equals the plain sums", "[kernels]", float, double) {
  using T = TestType;
  Rng rng(1);
  for (Index rows = 1; rows <= kernels::kFewRows; ++rows)
    for (Index c = 1; c <= 67; ++c)
      for (Index outputs = 1; outputs <= 9; ++outputs) {
        CAPTURE(rows, c, outputs);
        Product<T> p(rows, c, outputs, (c + outputs) % 16);
        p.fill(rng);
        REQUIRE(p.worst(p.run(0, rows)) <= kClose<T>);
      }
  for (const Index c : {768, 3072, 3077}) {
    CAPTURE(c);
    Product<T> p(8, c, 50, 3);
    p.fill(rng);
    CHECK(p.worst(p.run(0, 8)) <= kClose<T>);
  }
}

TEMPLATE_TEST_CASE("few_rows writes its columns of a wider result only", "[kernels]", float,
                   double) {
  using T = TestType;
  Rng rng(2);
  Product<T> p(8, 19, 7, 0);
  p.fill(rng);
  for (Index rows = 1; rows <= 8; ++rows) CHECK(p.run(0, rows, 4) == p.run(0, rows));
}

TEMPLATE_TEST_CASE("a row through few_rows has the same bits wherever it stands", "[kernels]",
                   float, double) {
  using T = TestType;
  Rng rng(3);
  for (Index c = 1; c <= 67; ++c)
    for (const Index outputs : {1, 2, 3, 7, 8}) {
      Product<T> p(8, c, outputs, c % 16);
      p.fill(rng);
      std::vector<T> alone;
      for (Index r = 0; r < 8; ++r) {
        const auto row = p.run(r, 1);
        alone.insert(alone.end(), row.begin(), row.end());
      }
      for (Index rows = 2; rows <= 8; ++rows)
        for (Index from = 0; from + rows <= 8; ++from) {
          CAPTURE(c, outputs, rows, from);
          REQUIRE(std::ranges::equal(
              p.run(from, rows),
              std::span(alone).subspan(static_cast<std::size_t>(from * outputs),
                                       static_cast<std::size_t>(rows * outputs))));
        }
    }
}

TEMPLATE_TEST_CASE("a result of few_rows has the same bits wherever its column stands", "[kernels]",
                   float, double) {
  using T = TestType;
  Rng rng(4);
  for (Index rows = 1; rows <= 8; ++rows)
    for (const Index c : {1, 16, 37, 67}) {
      CAPTURE(rows, c);
      Product<T> p(rows, c, 9, 2);
      p.fill(rng);
      for (Index o = 1; o < 9; ++o) std::copy_n(p.w.data(), c, p.w.data() + o * c);
      const auto y = p.run(0, rows);
      for (std::size_t i = 0; i < y.size(); ++i) REQUIRE(y[i] == y[i / 9 * 9]);
    }
}

TEMPLATE_TEST_CASE("a NaN in few_rows reaches its own results and no others", "[kernels]", float,
                   double) {
  using T = TestType;
  constexpr T kMissing = std::numeric_limits<T>::quiet_NaN();
  Rng rng(5);
  for (Index c = 1; c <= 67; ++c)
    for (Index at = 0; at < c; ++at) {
      const Index rows = 1 + at % 8, outputs = 1 + at % 5, r = at % rows, o = at % outputs;
      CAPTURE(c, at, rows, outputs);
      Product<T> p(rows, c, outputs, at % 16);
      const auto odd = [&](auto expected) {
        const auto y = p.run(0, rows);
        for (Index i = 0; i < rows * outputs; ++i)
          REQUIRE(std::isnan(y[static_cast<std::size_t>(i)]) == expected(i / outputs, i % outputs));
      };
      p.fill(rng);
      p.x[r * c + at] = kMissing;
      odd([&](Index row, Index) { return row == r; });
      p.fill(rng);
      p.w[o * c + at] = kMissing;
      odd([&](Index, Index column) { return column == o; });
    }
}

TEMPLATE_TEST_CASE("few_rows of rows without elements gives zeros, of no rows nothing", "[kernels]",
                   float, double) {
  using T = TestType;
  CHECK(Product<T>(3, 0, 5, 0).run(0, 3) == std::vector<T>(15, T(0)));
  T y = 7;
  kernels::few_rows<T>({nullptr, 0, 4, 4}, {nullptr, 0, 4, 4}, {&y, 0, 0, 0});
  CHECK(y == 7);
}
