// Eigenvalues of a small matrix.
#pragma once

#include <complex>
#include <vector>

#include "headwise/core/mat.hpp"

namespace headwise {

/// The N eigenvalues of a real matrix (N,N), in no particular order; those that are not real come
/// in conjugate pairs. By LAPACK's dgeev (Anderson et al. 1999, "LAPACK users' guide", sec. 2.3.4)
/// on the calling thread alone, so several may run in a parallel_for. All NaN when an element is
/// not finite. Throws ShapeError when the matrix is not square, Error when the iteration does not
/// converge.
std::vector<std::complex<double>> eigenvalues(Mat<const double> a);

}  // namespace headwise
