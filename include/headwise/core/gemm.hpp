// Matrix products. OpenBLAS computes the tiles; the tiles and the threads are ours.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "headwise/core/mat.hpp"

namespace headwise {

/// c = alpha a b + beta c.   a (M,K), b (K,N), c (M,N). With beta 0 the old c is not read.
/// Cut into tiles whose size follows from the shape alone, each one single-threaded BLAS call:
/// the same bits for any number of threads. Throws ShapeError when the sizes do not fit.
template <Real T>
void gemm(T alpha, Mat<const T> a, Mat<const T> b, T beta, Mat<T> c);

/// The same as one BLAS call, not cut: for blocks that somebody else has cut already, inside a
/// parallel_for. c must not be transposed.
template <Real T>
void gemm_tile(T alpha, Mat<const T> a, Mat<const T> b, T beta, Mat<T> c);

/// What is done to each tile of a result as soon as it is there, while it is in the cache: `tile`
/// is the block of the result that starts at row i and column j.
template <Real T>
using Finish = std::function<void(Index i, Index j, Mat<T> tile)>;

/// gemm() with a finish; c must not be transposed.
template <Real T>
void gemm(T alpha, Mat<const T> a, Mat<const T> b, T beta, Mat<T> c, const Finish<T>& finish);

/// Independent products that share one parallel region, so that a small one leaves no core idle.
/// Their tiles start in the order in which the products were added: the one with few tiles first.
/// A product into memory that an earlier one writes waits for it.
template <Real T>
class Products {
 public:
  /// As gemm(), at run(). The matrices, and the finish, must stay alive until then.
  void add(T alpha, Mat<const T> a, Mat<const T> b, T beta, Mat<T> c,
           const Finish<T>* finish = nullptr);
  void run();

 private:
  struct Tile {
    T alpha, beta;
    Mat<const T> a, b;
    Mat<T> c;
    Index i, j;
    const Finish<T>* finish;
  };
  std::vector<Tile> tiles_;
  std::map<const T*, const T*> results_;  // where the waiting ones write: begins and ends
};

/// Floating-point operations of a product of (M,K) and (K,N): a multiply and an add each.
inline double product_flops(Index m, Index n, Index k) {
  return 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

/// The BLAS in use, e.g. "OpenBLAS 0.3.21 (pthread), kernel Haswell".
std::string blas_description();

/// The BLAS's name for its kernels in use, e.g. "Cooperlake".
std::string blas_kernel();
/// Its name for those that are faster on this processor, or "" when those in use are good or there
/// is no choice: AVX-512 kernels where the processor has it, else AVX2 ones (on AMD's family 19h
/// with 0.3.21 always these: measured). init() chooses them. They change the last bits.
std::string better_blas_kernel();

}  // namespace headwise
