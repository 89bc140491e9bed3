// headwise info --selftest, and that it would see a BLAS that is wrong.
#include "cli/selftest.hpp"

#include "cli/program.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace headwise;
using namespace headwise::cli;
using namespace headwise::test;

namespace {

/// Tests gemm() with a mistake made afterwards, which is given all the product was.
template <Real T, class Mistake>
SelfTest with(Mistake mistake) {
  return test_products<T>(
      [&](T alpha, Mat<const T> a, Mat<const T> b, T beta, Mat<T> c) {
        gemm(alpha, a, b, beta, c);
        mistake(a, b, beta, c);
      },
      1);
}

template <Real T, class Mistake>
void is_found(Mistake mistake) {
  const SelfTest test = with<T>(mistake);
  CHECK(test.worst > 100 * kProductLimit<T>);
  CHECK_THROWS_AS(require_right<T>(test), Error);
}

}  // namespace

TEST_CASE("the self-test passes here and says what was tested", "[cli][blas]") {
  const Result r = headwise_program("info --selftest");
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  CHECK(mentions(r.out, {"OpenBLAS", "kernel ", "float ", "(limit 1e-04)", "double ",
                         "(limit 1e-12)", "1600 random products, worst relative error "}));
  CHECK(headwise_program("info --selftest somewhere").code == 2);
}

TEMPLATE_TEST_CASE("the self-test sees a wrong product", "[cli][blas]", float, double) {
  using T = TestType;
  const auto corner = [](Mat<T> c) -> T& { return element(c, c.rows - 1, c.cols - 1); };

  CHECK(with<T>([](auto...) {}).worst < kProductLimit<T>);
  SECTION("all zeros") {
    is_found<T>([](auto, auto, T, Mat<T> c) {
      for (Index i = 0; i < c.rows * c.cols; ++i) element(c, i / c.cols, i % c.cols) = 0;
    });
  }
  SECTION("NaN in one element, with one row, transposed, and beta 1 only") {
    is_found<T>([&](Mat<const T> a, Mat<const T> b, T beta, Mat<T> c) {
      if (c.rows == 1 && a.transposed && b.transposed && beta == 1) corner(c) = T(NAN);
    });
  }
  SECTION("the last of 70 terms is left out, in one element") {
    is_found<T>([&](Mat<const T> a, Mat<const T> b, T, Mat<T> c) {
      if (a.cols == 70)
        corner(c) -= element(a, a.rows - 1, a.cols - 1) * element(b, b.rows - 1, b.cols - 1);
    });
  }
  SECTION("a number behind a row is written") {
    is_found<T>([](auto, auto, T, Mat<T> c) {
      if (c.rows > 1 && c.ld > c.cols) c.data[c.cols] += 1;
    });
  }
  SECTION("the old result is added with beta 0") {
    is_found<T>([&](auto, auto, T beta, Mat<T> c) {
      if (beta == 0) corner(c) += T(1);
    });
  }
}

TEST_CASE("a wrong product's message names the BLAS, the product and a way out", "[cli][blas]") {
  const SelfTest wrong{1, 0.25, "(1,7) times (7,33) transposed, beta 1"};
  CHECK_THROWS_WITH(
      require_right<float>(wrong),
      "selftest: " + blas_description() +
          " gives wrong products in float: relative error 2.5e-01 in (1,7) times (7,33) "
          "transposed, beta 1. Set OPENBLAS_CORETYPE to other kernels, e.g. Haswell or Nehalem on "
          "x86-64, ARMV8 on ARM, and run this again");
}
