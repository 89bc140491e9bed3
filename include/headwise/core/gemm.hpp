// Matrix products. OpenBLAS computes the tiles; the tiles and the threads are ours.
#pragma once

#include <string>
#include <utility>
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

/// Independent products that share one parallel region, so that a small one leaves no core idle.
/// Their tiles start in the order in which the products were added: the one with few tiles first.
/// A product into memory that an earlier one writes waits for it.
template <Real T>
class Products {
 public:
  /// As gemm(), at run(). The matrices must stay alive until then.
  void add(T alpha, Mat<const T> a, Mat<const T> b, T beta, Mat<T> c);
  void run();

 private:
  struct Tile {
    T alpha, beta;
    Mat<const T> a, b;
    Mat<T> c;
  };
  std::vector<Tile> tiles_;
  std::vector<std::pair<const T*, const T*>> results_;  // where the waiting ones write
};

/// The BLAS in use, e.g. "OpenBLAS 0.3.21 (pthread), kernel Haswell".
std::string blas_description();

}  // namespace headwise
