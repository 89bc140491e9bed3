#include "headwise/core/gemm.hpp"

#include <atomic>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "headwise/core/parallel.hpp"
#include "headwise/core/random.hpp"
#include "support/catch.hpp"
#include "support/numbers.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"

using namespace headwise;
using namespace headwise::test;
using test::Threads;

namespace {

template <Real T>
constexpr double kTolerance = sizeof(T) == 4 ? 1e-5 : 1e-12;  // of the largest result

/// A window of m x n random numbers into a larger field of `around`.
template <Real T>
class Window {
 public:
  Window(Index m, Index n, bool transposed, Index margin, std::uint64_t seed,
         T around = static_cast<T>(kNaN))
      : rows_(transposed ? n : m),
        ld_((transposed ? m : n) + margin),
        margin_(margin),
        around_(around),
        field_(static_cast<std::size_t>((rows_ + 1) * ld_), around),
        mat_{field_.data() + margin / 2, m, n, ld_, transposed} {
    Rng rng(seed);
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) at(i, j) = static_cast<T>(rng.normal());
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  [[nodiscard]] Mat<T> mat() const { return mat_; }
  T& at(Index i, Index j) const { return mat_.data[mat_.transposed ? j * ld_ + i : i * ld_ + j]; }
  void fill(T value) {
    for (Index i = 0; i < mat_.rows; ++i)
      for (Index j = 0; j < mat_.cols; ++j) at(i, j) = value;
  }
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> v;
    for (Index i = 0; i < mat_.rows; ++i)
      for (Index j = 0; j < mat_.cols; ++j) v.push_back(at(i, j));
    return v;
  }
  /// Whether the field outside of the window is as it was. For `around` that is a number.
  [[nodiscard]] bool intact() const {
    const Index width = ld_ - margin_;
    for (Index k = 0; k < static_cast<Index>(field_.size()); ++k) {
      const Index in = k - margin_ / 2;
      const bool inside = in >= 0 && in / ld_ < rows_ && in % ld_ < width;
      if (!inside && field_[static_cast<std::size_t>(k)] != around_) return false;
    }
    return true;
  }

 private:
  Index rows_, ld_, margin_;
  T around_;
  std::vector<T> field_;
  Mat<T> mat_;
};

/// a b by three loops, in double.
template <Real T>
std::vector<double> plain(const Window<T>& a, const Window<T>& b) {
  std::vector<double> y;
  for (Index i = 0; i < a.mat().rows; ++i)
    for (Index j = 0; j < b.mat().cols; ++j) {
      double sum = 0;
      for (Index k = 0; k < a.mat().cols; ++k)
        sum += static_cast<double>(a.at(i, k)) * static_cast<double>(b.at(k, j));
      y.push_back(sum);
    }
  return y;
}

/// alpha y + beta c. With beta 0, c is not read.
template <Real T>
std::vector<double> combined(double alpha, std::vector<double> y, double beta, const Window<T>& c) {
  const std::vector<T> old = c.values();
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = alpha * y[i] + (beta == 0 ? 0 : beta * static_cast<double>(old[i]));
  return y;
}

/// max |c - y| / max |y|; infinite for a NaN.
template <Real T>
double off_by(const Window<T>& c, const std::vector<double>& y) {
  const std::vector<T> values = c.values();
  return test::relative_gap(Tensor<T>({c.mat().rows, c.mat().cols}, values),
                            Tensor<double>({c.mat().rows, c.mat().cols}, y));
}

template <Real T, class F>
bool nan_exactly_where(const Window<T>& c, F expected) {
  for (Index i = 0; i < c.mat().rows; ++i)
    for (Index j = 0; j < c.mat().cols; ++j)
      if (std::isnan(c.at(i, j)) != expected(i, j)) return false;
  return true;
}

struct Size {
  Index m, n, k;
};

// Single elements, odd shapes, one row and one column; results cut by rows of each height, by
// columns, and not at all.
constexpr Size kSizes[] = {{1, 1, 1},      {3, 5, 7},    {17, 33, 65},  {130, 70, 1},
                           {300, 200, 50}, {1, 800, 64}, {64, 900, 30}, {200, 1000, 3},
                           {129, 5, 20},   {2050, 9, 5}, {4100, 5, 3},  {1, 1, 40},
                           {1, 70, 1},     {1, 37, 133}, {90, 1, 37}};

}  // namespace

TEMPLATE_TEST_CASE("gemm equals three plain loops", "[core]", float, double) {
  using T = TestType;
  const Threads count(2);
  for (const auto& [m, n, k] : kSizes)
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        const Window<T> a(m, k, ta, 0, 1), b(k, n, tb, 0, 2);
        const auto product = plain(a, b);
        for (const auto& [alpha, beta] :
             {std::pair<T, T>{1, 0}, {1, 1}, {T(-0.5), 2}, {2, T(-0.25)}}) {
          CAPTURE(m, n, k, ta, tb, alpha, beta);
          const Window<T> c(m, n, false, 0, 3);
          const auto y = combined<T>(alpha, product, beta, c);
          gemm<T>(alpha, a.mat(), b.mat(), beta, c.mat());
          CHECK(off_by(c, y) <= kTolerance<T>);
        }
      }
}

TEMPLATE_TEST_CASE("gemm reads and writes its windows and nothing around them", "[core]", float,
                   double) {
  using T = TestType;
  for (const auto& [m, n, k] : kSizes)
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        const Window<T> a(m, k, ta, 6, 1), b(k, n, tb, 10, 2);  // NaN around them
        const auto product = plain(a, b);
        for (const bool tc : {false, true}) {
          CAPTURE(m, n, k, ta, tb, tc);
          const Window<T> c(m, n, tc, 4, 3, T(77));
          const auto y = combined<T>(1, product, 1, c);
          gemm<T>(1, a.mat(), b.mat(), 1, c.mat());
          CHECK(off_by(c, y) <= kTolerance<T>);
          CHECK(c.intact());
        }
      }
}

TEMPLATE_TEST_CASE("with beta 0 the old result is not read", "[core]", float, double) {
  using T = TestType;
  for (const auto& [m, n, k] : kSizes)
    for (const bool tb : {false, true})
      for (const bool tc : {false, true}) {
        CAPTURE(m, n, k, tb, tc);
        const Window<T> a(m, k, false, 0, 1), b(k, n, tb, 0, 2);
        Window<T> c(m, n, tc, 0, 3);
        c.fill(static_cast<T>(kNaN));
        gemm<T>(1, a.mat(), b.mat(), 0, c.mat());
        CHECK(off_by(c, plain(a, b)) <= kTolerance<T>);
      }
}

TEMPLATE_TEST_CASE("a NaN in a factor reaches its row or column of the result", "[core]", float,
                   double) {
  using T = TestType;
  for (const auto& [m, n, k] : kSizes)
    for (const bool transposed : {false, true}) {
      CAPTURE(m, n, k, transposed);
      const Index i = m / 2, j = n / 2, in = k / 2;
      Window<T> a(m, k, transposed, 0, 1), b(k, n, transposed, 0, 2);
      const Window<T> c(m, n, false, 0, 3);
      b.fill(0);  // 0 times NaN is NaN
      a.at(i, in) = static_cast<T>(kNaN);
      gemm<T>(1, a.mat(), b.mat(), 0, c.mat());
      CHECK(nan_exactly_where(c, [&](Index row, Index) { return row == i; }));

      a.fill(0);
      b.at(in, j) = static_cast<T>(kNaN);
      gemm<T>(1, a.mat(), b.mat(), 0, c.mat());
      CHECK(nan_exactly_where(c, [&](Index, Index column) { return column == j; }));
    }
}

TEMPLATE_TEST_CASE("a product over nothing is zero", "[core]", float, double) {
  using T = TestType;
  for (const Index rows : {3, 1}) {
    CAPTURE(rows);
    const Window<T> a(rows, 0, false, 1, 1), b(0, 5, false, 1, 2);
    Window<T> c(rows, 5, false, 0, 3);
    const std::vector<T> before = c.values();
    gemm<T>(1, a.mat(), b.mat(), 1, c.mat());
    CHECK(c.values() == before);
    c.fill(static_cast<T>(kNaN));
    gemm<T>(1, a.mat(), b.mat(), 0, c.mat());
    for (const T v : c.values()) CHECK(v == 0);
  }
  gemm<T>(1, Window<T>(0, 4, false, 0, 1).mat(), Window<T>(4, 0, false, 0, 2).mat(), 0,
          Window<T>(0, 0, false, 1, 3).mat());
}

TEMPLATE_TEST_CASE("gemm gives the same bits whoever runs its tiles", "[core]", float, double) {
  using T = TestType;
  for (const auto& [m, n, k] : kSizes)
    for (const bool transposed : {false, true}) {
      CAPTURE(m, n, k, transposed);
      const Window<T> a(m, k, transposed, 0, 1), b(k, n, transposed, 0, 2);
      const auto product = [&] {
        const Window<T> c(m, n, false, 0, 3);
        gemm<T>(1, a.mat(), b.mat(), 1, c.mat());
        return c.values();
      };
      const auto with = [&](int team) {
        const Threads count(team);
        return product();
      };
      const std::vector<T> alone = with(1);
      CHECK(with(2) == alone);
      CHECK(with(4) == alone);

      const Threads count(2);
      std::vector<std::vector<T>> inside(3), hosts(2);
      parallel_for(3, 1, [&](Index i, Index) { inside[static_cast<std::size_t>(i)] = product(); });
      for (const auto& c : inside) CHECK(c == alone);
      std::thread first([&] { hosts[0] = product(); }), second([&] { hosts[1] = product(); });
      first.join();
      second.join();
      for (const auto& c : hosts) CHECK(c == alone);
    }
}

TEMPLATE_TEST_CASE("gemm_tile is the product in one piece", "[core]", float, double) {
  using T = TestType;
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      CAPTURE(ta, tb);
      const Window<T> a(70, 33, ta, 2, 1), b(33, 90, tb, 4, 2);
      const Window<T> c(70, 90, false, 6, 3, T(77));
      const auto y = combined<T>(0.5, plain(a, b), -1, c);
      gemm_tile<T>(T(0.5), a.mat(), b.mat(), -1, c.mat());
      CHECK(off_by(c, y) <= kTolerance<T>);
      CHECK(c.intact());
    }
}

TEMPLATE_TEST_CASE("a finish meets every element once, with its final value", "[core]", float,
                   double) {
  using T = TestType;
  const Threads count(2);
  for (const auto& [m, n, k] : kSizes) {
    CAPTURE(m, n, k);
    const Window<T> a(m, k, false, 2, 1), b(k, n, true, 2, 2);
    const Window<T> without(m, n, false, 4, 3), c(m, n, false, 4, 3), met(m, n, false, 0, 0);
    std::vector<int> visits(static_cast<std::size_t>(m * n));
    std::atomic<int> elsewhere = 0;
    const Finish<T> finish = [&](Index i, Index j, Mat<T> tile) {
      if (tile.data != c.mat().block(i, j, tile.rows, tile.cols).data) ++elsewhere;
      for (Index r = 0; r < tile.rows; ++r)
        for (Index s = 0; s < tile.cols; ++s) {
          ++visits.at(static_cast<std::size_t>((i + r) * n + j + s));
          met.at(i + r, j + s) = tile.data[r * tile.ld + s]++;
        }
    };
    gemm<T>(1, a.mat(), b.mat(), 1, without.mat());
    gemm<T>(1, a.mat(), b.mat(), 1, c.mat(), finish);
    CHECK(elsewhere == 0);
    CHECK(visits == std::vector<int>(visits.size(), 1));
    CHECK(met.values() == without.values());
    std::vector<T> changed = without.values();
    for (T& x : changed) ++x;
    CHECK(c.values() == changed);  // what the finish wrote stays
  }
}

TEST_CASE("of products that share a run each has its own finish or none", "[core]") {
  const Threads count(2);
  const Window<double> a(200, 7, false, 0, 1), b(7, 30, false, 0, 2);
  const Window<double> c(200, 30, false, 0, 3), d(200, 30, false, 0, 4), e(200, 30, false, 0, 5);
  const Finish<double> minus = [](Index, Index, Mat<double> tile) {
    for (Index i = 0; i < tile.rows; ++i)
      for (Index j = 0; j < tile.cols; ++j) tile.data[i * tile.ld + j] *= -1;
  };
  gemm<double>(1, a.mat(), b.mat(), 0, e.mat());
  Products<double> both;
  both.add(1, a.mat(), b.mat(), 0, c.mat(), &minus);
  both.add(1, a.mat(), b.mat(), 0, d.mat());
  both.run();
  std::vector<double> opposite = e.values();
  for (double& x : opposite) x = -x;
  CHECK(c.values() == opposite);
  CHECK(d.values() == e.values());
}

TEMPLATE_TEST_CASE("independent products share one run", "[core]", float, double) {
  using T = TestType;
  const Threads count(2);
  const Window<T> x(200, 30, false, 0, 1), w(40, 30, false, 0, 2), dy(200, 40, false, 0, 3);
  const Window<T> dx(200, 30, false, 0, 4), dw(40, 30, false, 0, 5);
  const Window<T> dyt(40, 200, false, 0, 0);
  for (Index i = 0; i < 200; ++i)
    for (Index j = 0; j < 40; ++j) dyt.at(j, i) = dy.at(i, j);
  Products<T> both;
  for (int round = 0; round < 2; ++round) {  // the second adds to what the first gave
    const auto want_dw = combined<T>(1, plain(dyt, x), 1, dw);
    const auto want_dx = combined<T>(1, plain(dy, w), 1, dx);
    both.add(1, dy.mat().t(), x.mat(), 1, dw.mat());
    both.add(1, dy.mat(), w.mat(), 1, dx.mat());
    both.run();
    CHECK(off_by(dw, want_dw) <= kTolerance<T>);
    CHECK(off_by(dx, want_dx) <= kTolerance<T>);
  }
}

TEMPLATE_TEST_CASE("products into the same matrix are done in order", "[core]", float, double) {
  using T = TestType;
  const Threads count(2);
  const Window<T> a(60, 20000, false, 0, 1), b(20000, 50, false, 0, 2);
  const Window<T> d(60, 2, false, 0, 3), e(2, 50, false, 0, 4);
  const std::vector<double> more = plain(d, e);
  std::vector<double> both = plain(a, b);
  for (std::size_t i = 0; i < both.size(); ++i) both[i] += more[i];
  for (int round = 0; round < 5; ++round)
    for (const bool transposed : {false, true}) {
      CAPTURE(transposed);
      Window<T> c(60, 50, transposed, 0, 5);
      c.fill(static_cast<T>(kNaN));
      Products<T> work;
      work.add(1, a.mat(), b.mat(), 0, c.mat());
      work.add(1, d.mat(), e.mat(), 1, c.mat());
      work.run();
      CHECK(off_by(c, both) <= kTolerance<T>);

      // The first takes long: together with it, the second would be done, and then be added to.
      work.add(1, a.mat(), b.mat(), 1, c.mat());
      work.add(1, d.mat(), e.mat(), 0, c.mat());
      work.run();
      CHECK(off_by(c, more) <= kTolerance<T>);
    }
}

TEST_CASE("a window's blocks and transposes are where they should be", "[core]") {
  Tensor<double> x({2, 2, 3}, {0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32});
  const Mat<double> m = as_rows(x);
  CHECK(m.rows == 4);
  CHECK(m.cols == 3);
  CHECK(m.block(1, 1, 2, 2).data[0] == 11);
  const Mat<double> t = m.t();
  CHECK(t.rows == 3);
  CHECK(t.cols == 4);
  CHECK(t.block(2, 1, 1, 1).data[0] == 12);
  CHECK(t.t().block(3, 2, 1, 1).data[0] == 32);
}

TEST_CASE("matrices that do not fit are refused with their sizes", "[core][errors]") {
  const Window<float> a(2, 3, false, 0, 1), b(4, 5, false, 0, 2), c(2, 5, false, 0, 3);
  CHECK_THROWS_WITH(gemm<float>(1, a.mat(), b.mat(), 0, c.mat()),
                    "gemm: (2,3) times (4,5) does not fit (2,5)");
  CHECK_THROWS_WITH(gemm<float>(1, a.mat().t(), b.mat(), 0, c.mat()),
                    "gemm: (3,2) times (4,5) does not fit (2,5)");
  CHECK_THROWS_AS(gemm<float>(1, a.mat(), a.mat().t(), 0, c.mat()), ShapeError);
  CHECK_THROWS_AS(gemm_tile<float>(1, a.mat(), b.mat(), 0, c.mat()), ShapeError);
  Products<float> work;
  CHECK_THROWS_WITH(work.add(1, b.mat(), a.mat(), 0, c.mat()),
                    "gemm: (4,5) times (2,3) does not fit (2,5)");
  const Finish<float> nothing = [](Index, Index, Mat<float>) {};
  CHECK_THROWS_WITH(gemm<float>(1, a.mat(), a.mat().t(), 0, c.mat().block(0, 0, 2, 2).t(), nothing),
                    "gemm: a transposed result has no finish");
}

TEST_CASE("the BLAS in use is described", "[core]") {
  const std::string text = blas_description();
  CHECK(text.find("OpenBLAS ") != std::string::npos);
  CHECK(text.ends_with(" kernel " + blas_kernel()));
  CHECK_FALSE(blas_kernel().empty());
}

TEST_CASE("a better BLAS kernel is another one than that in use", "[core]") {
  CHECK(better_blas_kernel() != blas_kernel());
}
