#include "headwise/core/eigenvalues.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/single_thread.hpp"

// OpenBLAS carries LAPACK, but cblas.h does not declare it. Fortran passes the lengths of texts
// last.
extern "C" void dgeev_(const char* left, const char* right, const int* n, double* a, const int* lda,
                       double* re, double* im, double* vl, const int* ldvl, double* vr,
                       const int* ldvr, double* work, const int* lwork, int* info, std::size_t,
                       std::size_t);

namespace headwise {

std::vector<std::complex<double>> eigenvalues(Mat<const double> a) {
  require(a.rows == a.cols, "eigenvalues: ({},{}) is not square", a.rows, a.cols);
  require(a.rows <= std::numeric_limits<int>::max() / 8,
          "eigenvalues: {} is more than LAPACK counts", a.rows);
  const auto size = static_cast<std::size_t>(a.rows);
  std::vector<std::complex<double>> all(size);
  if (size == 0) return all;
  std::vector<double>
      copy;  // dgeev overwrites it; by columns or by rows is the same to eigenvalues
  for (Index i = 0; i < a.rows; ++i) {
    const double* row = a.data + i * a.ld;
    copy.insert(copy.end(), row, row + a.rows);
  }
  if (!std::all_of(copy.begin(), copy.end(), [](double x) { return std::isfinite(x); })) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    std::fill(all.begin(), all.end(), std::complex<double>(nan, nan));
    return all;
  }

  const int n = static_cast<int>(a.rows), one = 1, room = 8 * n;
  int info = 0;
  std::vector<double> re(size), im(size), work(8 * size);
  const OneBlasThread guard;
  dgeev_("N", "N", &n, copy.data(), &n, re.data(), im.data(), nullptr, &one, nullptr, &one,
         work.data(), &room, &info, 1, 1);
  require<Error>(info == 0, "eigenvalues: dgeev answers {} for a matrix of {} rows", info, n);
  for (std::size_t i = 0; i < size; ++i) all[i] = {re[i], im[i]};
  return all;
}

}  // namespace headwise
