// Which instruction set the vector kernels use.
#pragma once

#include <string>

namespace headwise::kernels {

/// Its name, e.g. "AVX3".
std::string isa_name();

/// Uses none better than this one: "sse4", "avx2" or "avx3". For tests; call it before any kernel.
/// Throws UsageError for another name or one this machine does not have.
void limit_isa(const std::string& name);

}  // namespace headwise::kernels
