// headwise info --selftest: random products against plain loops. BLAS kernels for one processor or
// another have been wrong before.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "headwise/core/error.hpp"
#include "headwise/core/function_ref.hpp"
#include "headwise/core/gemm.hpp"
#include "headwise/core/random.hpp"

namespace headwise::cli {

/// A product to be tested: gemm(), or a wrong one.
template <Real T>
using Product = FunctionRef<void(T alpha, Mat<const T> a, Mat<const T> b, T beta, Mat<T> c)>;

/// A window of m x n random numbers. Its stored rows are an odd number of elements apart.
template <Real T>
Mat<T> random_window(std::vector<T>& field, Index m, Index n, bool transposed, Rng& rng) {
  const Index rows = transposed ? n : m, cols = transposed ? m : n;
  const Index ld = (cols + rng.below(8)) | 1;
  field.resize(static_cast<std::size_t>(rows * ld));
  for (T& x : field) x = static_cast<T>(rng.normal());
  return {field.data(), m, n, ld, transposed};
}

template <class T>
T& element(Mat<T> x, Index i, Index j) {
  return *x.block(i, j, 1, 1).data;
}

/// The error of one product of random (M,K) and (K,N) matrices, the largest of all elements of c's
/// memory, those between its rows included, which must stay as they were. Relative to the sum of
/// the terms' absolute values; infinite where there is a NaN.
template <Real T>
double product_error(Product<T> product, Index m, Index n, Index k, bool a_transposed,
                     bool b_transposed, T beta, Rng& rng) {
  std::vector<T> a_field, b_field, c_field;
  const Mat<const T> a = random_window(a_field, m, k, a_transposed, rng);
  const Mat<const T> b = random_window(b_field, k, n, b_transposed, rng);
  const Mat<T> c = random_window(c_field, m, n, false, rng);
  std::vector<double> expected(c_field.begin(), c_field.end()), scale(expected);
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      const auto at = static_cast<std::size_t>(i * c.ld + j);
      double sum = static_cast<double>(beta) * expected[at], size = std::fabs(sum);
      for (Index l = 0; l < k; ++l) {
        const double term = static_cast<double>(element(a, i, l)) * element(b, l, j);
        sum += term;
        size += std::fabs(term);
      }
      expected[at] = sum;
      scale[at] = size;
      if (beta == 0) c_field[at] = std::numeric_limits<T>::quiet_NaN();  // must not be read
    }

  product(T(1), a, b, beta, c);
  double worst = 0;
  for (std::size_t at = 0; at < c_field.size(); ++at) {
    const double error = std::fabs(c_field[at] - expected[at]) / std::fabs(scale[at]);
    if (std::isnan(error)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, error);
  }
  return worst;
}

/// What many products came to.
struct SelfTest {
  Index products = 0;
  double worst = 0;   ///< see product_error()
  std::string where;  ///< e.g. "(1,7) times (7,33) transposed, beta 1"
};

/// Products of sizes from 1 to 70, every fourth with one row, in all four transpose cases, with
/// beta 0 and 1.
template <Real T>
SelfTest test_products(Product<T> product, std::uint64_t seed) {
  SelfTest test;
  Rng rng(seed);
  const auto size = [&] { return 1 + rng.below(70); };
  for (; test.products < 1600; ++test.products) {
    const Index which = test.products;
    const bool ta = which % 2 != 0, tb = which / 2 % 2 != 0;
    const T beta = which / 4 % 2 != 0 ? T(1) : T(0);
    const Index m = which / 8 % 4 == 0 ? 1 : size(), n = size(), k = size();
    const double error = product_error(product, m, n, k, ta, tb, beta, rng);
    if (error < test.worst) continue;
    test.worst = error;
    test.where = fmt::format("({},{}){} times ({},{}){}, beta {}", m, k, ta ? " transposed" : "", k,
                             n, tb ? " transposed" : "", beta);
  }
  return test;
}

/// The largest error of a right product.
template <Real T>
constexpr double kProductLimit = sizeof(T) == 4 ? 1e-4 : 1e-12;

/// Throws Error with advice when the error is more than that.
template <Real T>
void require_right(const SelfTest& test) {
  require<Error>(test.worst <= kProductLimit<T>,
                 "selftest: {} gives wrong products in {}: relative error {:.1e} in {}. Set "
                 "OPENBLAS_CORETYPE to other kernels, e.g. Haswell or Nehalem on x86-64, ARMV8 on "
                 "ARM, and run this again",
                 blas_description(), sizeof(T) == 4 ? "float" : "double", test.worst, test.where);
}

}  // namespace headwise::cli
