// Which of OpenBLAS's kernels suit a processor.
#pragma once

#include <string>
#include <string_view>

namespace headwise {

/// What a processor can do, as far as it matters here.
struct Processor {
  bool avx2 = false;     ///< AVX2 and FMA
  bool avx512 = false;   ///< AVX-512 F, BW, DQ and VL
  bool amd_19h = false;  ///< AMD family 19h: Zen 3 and 4

  /// The one this runs on, its operating system included. On others than x86-64: nothing.
  static Processor here();
};

/// OpenBLAS's name for the kernels that are faster on `processor` than those of the name `in_use`,
/// or "" when these are good or their name is not known. By what the processor can do, never by its
/// model: OpenBLAS 0.3.21 takes its oldest kernels on a model that it does not know.
std::string better_kernel(std::string_view in_use, const Processor& processor,
                          std::string_view blas_version);

/// Makes better_blas_kernel() those in use, unless the environment's OPENBLAS_CORETYPE chooses.
/// Only before the first product.
void choose_blas_kernel();

}  // namespace headwise
