#include "core/blas_kernel.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace headwise {
namespace {

/// What kernels use: 0 SSE, 1 AVX, 2 AVX2 and FMA, 3 AVX-512. Nothing for a name that is not known,
/// which may be of another kind of processor, or newer than this list.
std::optional<int> generation(std::string_view kernel) {
  struct Row {
    int generation;
    std::string_view kernel;
  };
  static constexpr Row kRows[] = {
      {0, "Katmai"},       {0, "Coppermine"},    {0, "Northwood"},  {0, "Prescott"},
      {0, "Banias"},       {0, "Core2"},         {0, "Penryn"},     {0, "Dunnington"},
      {0, "Nehalem"},      {0, "Atom"},          {0, "Athlon"},     {0, "Opteron"},
      {0, "Opteron_SSE3"}, {0, "Barcelona"},     {0, "Bobcat"},     {0, "Nano"},
      {1, "Sandybridge"},  {1, "Bulldozer"},     {1, "Piledriver"}, {1, "Steamroller"},
      {1, "Excavator"},    {2, "Haswell"},       {2, "Zen"},        {3, "SkylakeX"},
      {3, "Cooperlake"},   {3, "SapphireRapids"}};
  for (const Row& row : kRows)
    if (row.kernel == kernel) return row.generation;
  return std::nullopt;
}

}  // namespace

Processor Processor::here() {
  Processor p;
#ifdef __x86_64__
  __builtin_cpu_init();
  p.avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  p.avx512 = p.avx2 && __builtin_cpu_supports("avx512f") != 0 &&
             __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
             __builtin_cpu_supports("avx512vl") != 0;
  p.amd_19h = __builtin_cpu_is("amdfam19h") != 0;
#endif
  return p;
}

std::string better_kernel(std::string_view in_use, const Processor& processor,
                          std::string_view blas_version) {
  const std::optional<int> now = generation(in_use);
  int best = processor.avx512 ? 3 : processor.avx2 ? 2 : 0;
  // Measured on Zen 4: the AVX-512 kernels of 0.3.21 are 8 % slower there in large products.
  const bool slow_avx512 = processor.amd_19h && blas_version == "0.3.21";
  if (slow_avx512) best = std::min(best, 2);
  if (!now || best < 2 || (*now >= best && !(slow_avx512 && *now > best))) return "";
  return best == 3 ? "SkylakeX" : "Haswell";
}

}  // namespace headwise
