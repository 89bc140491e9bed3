#include "cli/speed.hpp"

#include <sys/resource.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <vector>

#include "cli/bench_gemm.hpp"
#include "headwise/core/gemm.hpp"
#include "headwise/core/parallel.hpp"
#include "headwise/core/printable.hpp"
#include "headwise/core/tensor.hpp"
#include "kernels/kernels.hpp"

namespace headwise::cli {

Timing measure(double seconds, FunctionRef<void()> work) {
  using Clock = std::chrono::steady_clock;
  work();
  work();
  std::vector<double> times;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end || times.size() < 3) {
    const auto start = Clock::now();
    work();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front()};
}

double product_rate(Index m, Index n, Index k, double seconds) {
  const auto a = Tensor<float>::full({m, k}, 1), b = Tensor<float>::full({n, k}, 0.5f);
  auto c = Tensor<float>::uninitialized({m, n});
  const Mat<float> out = as_rows(c);
  const Timing t = measure(seconds, [&] { gemm<float>(1, as_rows(a), as_rows(b).t(), 0, out); });
  return product_flops(m, n, k) / t.median / 1e9;
}

Peak gemm_peak(double seconds) {
  Peak peak{.gflops = gemm_rate(seconds), .note = ""};
  const std::string better = better_blas_kernel();
  if (better.empty()) return peak;
  const std::optional<double> rate = gemm_rate_with(better, seconds);
  if (rate && *rate > peak.gflops)
    peak = {*rate, fmt::format(" with its {} kernels ({} in use)", better, blas_kernel())};
  return peak;
}

std::string slower_kernels_text() {
  const std::string better = better_blas_kernel();
  if (better.empty()) return "";
  const char* const asked = std::getenv("OPENBLAS_CORETYPE");
  return fmt::format("{} is faster here than {}; OPENBLAS_CORETYPE is {}\n", better, blas_kernel(),
                     asked == nullptr ? "not set" : printable(asked));
}

double read_rate(double seconds) {
  constexpr Index kFloats = 64 << 20, kBlock = 1 << 16;
  const auto x = Tensor<float>::full({kFloats}, 1);
  std::vector<double> parts(kFloats / kBlock);
  const Timing t = measure(seconds, [&] {
    parallel_for(kFloats, kBlock, [&](Index begin, Index end) {
      parts[static_cast<std::size_t>(begin / kBlock)] =
          kernels::sum_squares(x.data() + begin, end - begin);
    });
  });
  return 4.0 * kFloats / t.median / 1e9;
}

long peak_rss_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

}  // namespace headwise::cli
