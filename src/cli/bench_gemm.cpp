// headwise bench gemm: the BLAS's kernels beside each other.
#include "cli/bench_gemm.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/options.hpp"
#include "cli/speed.hpp"
#include "headwise/core/gemm.hpp"
#include "headwise/core/parallel.hpp"

namespace headwise::cli {
namespace {

using nlohmann::json;

/// What the BLAS reaches with one set of its kernels.
struct Rates {
  std::string kernel;
  double large = 0;  ///< GFLOP/s of (2048,2048) times (2048,2048): what every share is a share of
  double small = 0;  ///< GFLOP/s of (768,128) times (128,512), a linear layer of nano
  double row = 0;    ///< GB/s of one row through a (50257,768) weight, a matrix-vector product
  double read = 0;   ///< GB/s at which memory can be read

  void visit(auto&& v) {
    v("kernel", kernel);
    v("gflops", large);
    v("small_gflops", small);
    v("row_gb_per_second", row);
    v("read_gb_per_second", read);
  }
};

Rates rates(double seconds) {
  constexpr Index kVocab = 50257, kWidth = 768;
  const double row = product_rate(1, kVocab, kWidth, seconds / 4);
  const double bytes_a_flop = 4.0 * kVocab * kWidth / product_flops(1, kVocab, kWidth);
  return {blas_kernel(), gemm_rate(seconds / 4), product_rate(768, 512, 128, seconds / 4),
          row * bytes_a_flop, read_rate(seconds / 4)};
}

/// The same in a program of its own that starts with those kernels; nothing where this processor or
/// this BLAS has none of that name.
std::optional<Rates> rates_with(const std::string& kernel, double seconds) {
  const std::string command = fmt::format(
      "OPENBLAS_CORETYPE={} /proc/{}/exe bench gemm --json --seconds {} --threads {} 2>/dev/null",
      kernel, ::getpid(), seconds, threads());
  FILE* const pipe = ::popen(command.c_str(), "r");
  require<Error>(pipe != nullptr, "bench gemm: cannot start {}", command);
  std::string out;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) out.push_back(static_cast<char>(c));
  const bool done = ::pclose(pipe) == 0;
  const json line = json::parse(out, nullptr, false);
  if (!done || !line.is_object() || line.value("kernel", "") != kernel) return std::nullopt;
  Rates r;
  r.visit([&](const char* key, auto& x) { line.at(key).get_to(x); });
  return r;
}

/// Medians of each of the BLAS's kernels, measured in turn.
std::vector<Rates> compare_kernels(double seconds) {
  constexpr Index kRounds = 3;
  std::vector<std::string> names = {blas_kernel()};
#ifdef __x86_64__
  for (const char* name : {"Haswell", "Zen", "SkylakeX", "Cooperlake"})
    if (name != blas_kernel()) names.emplace_back(name);
#endif
  std::map<std::string, std::vector<Rates>> found;
  for (Index round = 0; round < kRounds; ++round)
    for (const std::string& name : names)
      if (const auto r = rates_with(name, seconds / (kRounds * static_cast<double>(names.size()))))
        found[name].push_back(*r);
  std::vector<Rates> medians;
  for (auto& [name, all] : found) {
    const auto median = [&, &all = all](double Rates::*member) {
      std::sort(all.begin(), all.end(),
                [&](const Rates& a, const Rates& b) { return a.*member < b.*member; });
      return all[all.size() / 2].*member;
    };
    medians.push_back({name, median(&Rates::large), median(&Rates::small), median(&Rates::row),
                       median(&Rates::read)});
  }
  return medians;
}

}  // namespace

std::optional<double> gemm_rate_with(const std::string& kernel, double seconds) {
  const std::optional<Rates> r = rates_with(kernel, 4 * seconds);  // a fourth of it for each rate
  if (!r) return std::nullopt;
  return r->large;
}

int bench_gemm(double seconds, bool json_lines) {
  if (json_lines) {
    Rates r = rates(seconds);
    json line = {{"engine", fmt::format("headwise {}", HEADWISE_VERSION)},
                 {"mode", "gemm"},
                 {"threads", threads()},
                 {"blas", blas_description()}};
    r.visit([&](const char* key, const auto& x) { line[key] = x; });
    fmt::print("{}\n", line.dump());
    return kDone;
  }
  const std::vector<Rates> found = compare_kernels(seconds);
  require<Error>(std::any_of(found.begin(), found.end(),
                             [](const Rates& r) { return r.kernel == blas_kernel(); }),
                 "bench gemm: cannot measure the kernel in use, {}", blas_kernel());
  fmt::print("matrix products on {} thread(s), {}\n", threads(), blas_description());
  fmt::print("{:12} {:>16} {:>16} {:>16} {:>18}\n", "kernels", "large, GFLOP/s", "small, GFLOP/s",
             "one row, GB/s", "memory read, GB/s");
  for (const Rates& r : found)
    fmt::print("{:12} {:16.1f} {:16.1f} {:16.1f} {:18.1f}{}\n", r.kernel, r.large, r.small, r.row,
               r.read, r.kernel == blas_kernel() ? "  in use" : "");
  fmt::print("{}", slower_kernels_text());
  fmt::print(
      "large: (2048,2048) times (2048,2048); small: (768,128) times (128,512); one row: (1,768) "
      "times (768,50257)\nOPENBLAS_CORETYPE=NAME in the environment chooses; it changes the last "
      "bits\n");
  return kDone;
}

}  // namespace headwise::cli
