// headwise bench gemm.
#pragma once

#include <optional>
#include <string>

namespace headwise::cli {

/// Measures matrix products and memory for so many seconds: with each of the BLAS's kernels in
/// turn, or, for JSON, with the one in use. Prints, and returns the exit code.
int bench_gemm(double seconds, bool json_lines);

/// gemm_rate() in a process of its own with those of the BLAS's kernels; nothing where this
/// processor or this BLAS has none of that name.
std::optional<double> gemm_rate_with(const std::string& kernel, double seconds);

}  // namespace headwise::cli
