// Timing, and the rates of this machine that every other speed is a share of.
#pragma once

#include "headwise/core/function_ref.hpp"

namespace headwise::cli {

/// Seconds that a piece of work took, over several runs.
struct Timing {
  double median = 0, least = 0;
};

/// Runs `work` twice unmeasured, then again and again for `seconds`, three times at least.
Timing measure(double seconds, FunctionRef<void()> work);

/// GFLOP/s of a product of two (2048,2048) float matrices on threads() threads.
double gemm_rate(double seconds);
/// GB/s at which threads() threads read 256 MiB.
double read_rate(double seconds);
/// The largest part of memory this process has held so far, in MiB.
long peak_rss_mb();

}  // namespace headwise::cli
