// Timing, and the rates of this machine that every other speed is a share of.
#pragma once

#include <string>

#include "headwise/core/function_ref.hpp"
#include "headwise/core/shape.hpp"

namespace headwise::cli {

/// Seconds that a piece of work took, over several runs.
struct Timing {
  double median = 0, least = 0;
};

/// Runs `work` twice unmeasured, then again and again for `seconds`, three times at least.
Timing measure(double seconds, FunctionRef<void()> work);

/// GFLOP/s of a (M,K) times a transposed (N,K) float matrix, as linear() multiplies, on threads()
/// threads.
double product_rate(Index m, Index n, Index k, double seconds);
/// The same at (2048,2048), where the BLAS is at its best.
inline double gemm_rate(double seconds) { return product_rate(2048, 2048, 2048, seconds); }

/// GEMM peak of this machine, with the best of the BLAS's kernels.
struct Peak {
  double gflops = 0;
  std::string note;  ///< " with its Haswell kernels (Prescott in use)", or "" where these are best
};
/// Measured here, and where better kernels exist than those in use also in a process with them.
Peak gemm_peak(double seconds);
/// A line that says which of the BLAS's kernels are faster than those in use; "" for none.
std::string slower_kernels_text();
/// GB/s at which threads() threads read 256 MiB.
double read_rate(double seconds);
/// The largest part of memory this process has held so far, in MiB.
long peak_rss_mb();

}  // namespace headwise::cli
