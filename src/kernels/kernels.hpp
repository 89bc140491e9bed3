// The loops worth tuning, each on one row, one run of n elements or a few rows, single-threaded:
// ops decide what runs in parallel. Vector kernels are compiled once per instruction set (Google
// Highway).
#pragma once

#include "headwise/core/mat.hpp"

namespace headwise::kernels {

/// What it takes to compute a row of softmax again with the same bits.
template <Real T>
struct RowStats {
  T max = 0;      ///< of the row; -inf when nothing is allowed, NaN when the row is poisoned
  T inverse = 0;  ///< 1 / sum exp(x - max)
};

/// x = exp(x - max) / sum, in place. A row of nothing but -inf (no key allowed) becomes zeros, one
/// with a NaN or +inf becomes NaN throughout, as the plain formula gives.
template <Real T>
RowStats<T> softmax(T* x, Index n);
/// The same from saved statistics: the same bits.
template <Real T>
void softmax_again(T* x, Index n, RowStats<T> stats);
/// dx = p (dp - <p, dp>), written over dp.
template <Real T>
void softmax_backward(const T* p, T* dp, Index n);

/// Statistics of one row for layer_norm. The mean is kept as two terms: subtracting both recovers
/// digits that a large mean would cost.
template <Real T>
struct NormStats {
  T mean = 0, mean_rest = 0;
  T rstd = 0;  ///< 1 / sqrt(variance + eps)
};

/// y = (x - mean) rstd gain + bias; gain and bias may be null.
template <Real T>
NormStats<T> layer_norm(const T* x, const T* gain, const T* bias, T eps, T* y, Index n);
/// dx = rstd (g - mean(g) - xhat mean(g xhat)) + beta dx, g = dy gain; beta is 0 (the old dx is not
/// read) or 1. Unless null, dgain += dy xhat.
template <Real T>
void layer_norm_backward(const T* x, NormStats<T> stats, const T* gain, const T* dy, T beta, T* dx,
                         T* dgain, Index n);

/// y = x rms gain, rms = 1 / sqrt(mean(x^2) + eps), which is returned; gain may be null.
template <Real T>
T rms_norm(const T* x, const T* gain, T eps, T* y, Index n);
/// dx = rms (g - xhat mean(g xhat)), g = dy gain, xhat = x rms. Unless null, dgain += dy xhat.
template <Real T>
void rms_norm_backward(const T* x, T rms, const T* gain, const T* dy, T* dx, T* dgain, Index n);

/// y = gelu(x), slope = dy/dx (null: not wanted).
/// exact: x Phi(x) (Hendrycks and Gimpel 2016, arXiv:1606.08415, sec. 2); tanh: its approximation
/// there.
template <Real T>
void gelu_exact(const T* x, T* y, T* slope, Index n);
template <Real T>
void gelu_tanh(const T* x, T* y, T* slope, Index n);

/// log sum exp(x), in double for the last step; NaN when the row has a NaN or +inf.
template <Real T>
double log_sum_exp(const T* x, Index n);
/// dx = scale exp(x - lse), the gradient of lse times scale.
template <Real T>
void exp_minus(const T* x, double lse, T scale, T* dx, Index n);

/// Rows of x up to which few_rows() reads a weight as fast as memory gives it.
constexpr int kFewRows = 8;
/// y = x w^T for x (R,C), w (O,C) and y (R,O), R at most kFewRows, none of them transposed. The
/// bits of a result follow from its row of x and its row of w alone, whatever R and O are.
template <Real T>
void few_rows(Mat<const T> x, Mat<const T> w, Mat<T> y);

/// One AdamW update (Loshchilov and Hutter 2019, arXiv:1711.05101, alg. 2), all of it in one pass.
template <Real T>
struct AdamwStep {
  T grad_scale;  ///< the clipping factor
  T beta1, beta2, eps;
  T keep;     ///< 1 - lr weight_decay
  T rate;     ///< lr / (1 - beta1^t)
  T unbias2;  ///< 1 / (1 - beta2^t)
};
/// m = beta1 m + (1-beta1) g, v = beta2 v + (1-beta2) g^2, p = keep p - rate m / (sqrt(unbias2 v) +
/// eps). Needs eps > 0. Returns whether p and v are finite.
template <Real T>
bool adamw(const AdamwStep<T>& step, const T* g, T* m, T* v, T* p, Index n);

/// Sum of squares, in double.
template <Real T>
double sum_squares(const T* x, Index n);
/// Sum, in double.
template <Real T>
double sum(const T* x, Index n);
/// Whether no element is NaN or infinite. x is not transposed.
template <Real T>
bool all_finite(Mat<const T> x);
/// y += x.
template <Real T>
void add(const T* x, T* y, Index n);
/// y = a b.
template <Real T>
void multiply(const T* a, const T* b, T* y, Index n);

}  // namespace headwise::kernels
