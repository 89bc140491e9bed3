#include "kernels/isa.hpp"

#include <map>

#include "headwise/core/error.hpp"
#include "hwy/highway.h"

namespace headwise::kernels {
namespace {

std::int64_t targets() { return hwy::SupportedTargets() & HWY_TARGETS; }

}  // namespace

std::string isa_name() {
  const std::int64_t all = targets();
  return hwy::TargetName(all & -all);  // a better one has a lower bit
}

void limit_isa(const std::string& name) {
  static const std::map<std::string, std::int64_t> known = {
      {"sse4", HWY_SSE4}, {"avx2", HWY_AVX2}, {"avx3", HWY_AVX3}};
  const auto found = known.find(name);
  require<UsageError>(found != known.end(), "HEADWISE_ISA: '{}' is none of sse4, avx2, avx3", name);
  require<UsageError>((targets() & found->second) != 0,
                      "HEADWISE_ISA: this machine or build has no {}", name);
  hwy::DisableTargets(found->second - 1);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace headwise::kernels
