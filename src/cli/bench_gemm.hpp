// headwise bench gemm.
#pragma once

namespace headwise::cli {

/// Measures matrix products and memory for so many seconds: with each of the BLAS's kernels in
/// turn, or, for JSON, with the one in use. Prints, and returns the exit code.
int bench_gemm(double seconds, bool json_lines);

}  // namespace headwise::cli
