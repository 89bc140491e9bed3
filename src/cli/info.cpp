// headwise info [RUN]: what this program runs on, or what a run is made of; whether the BLAS is
// right.
#include <fmt/format.h>

#include "cli/load.hpp"
#include "cli/options.hpp"
#include "cli/selftest.hpp"
#include "cli/speed.hpp"
#include "headwise/core/parallel.hpp"
#include "kernels/isa.hpp"

namespace headwise::cli {
namespace {

void print_options(const char* title, auto options) {
  fmt::print("{}\n", title);
  options.visit([](const char* name, const auto& member, const char*) {
    fmt::print("  {:16} {}\n", name, default_text(member));
  });
}

template <Real T>
void selftest_in(const char* dtype, std::uint64_t seed) {
  const SelfTest test = test_products<T>(
      [](T alpha, Mat<const T> a, Mat<const T> b, T beta, Mat<T> c) { gemm(alpha, a, b, beta, c); },
      seed);
  fmt::print("{:16} {} random products, worst relative error {:.1e} (limit {:.0e}) in {}\n", dtype,
             test.products, test.worst, kProductLimit<T>, test.where);
  require_right<T>(test);
}

int selftest(std::uint64_t seed) {
  fmt::print("BLAS             {}\n", blas_description());
  selftest_in<float>("float", seed);
  selftest_in<double>("double", seed);
  return kDone;
}

int info(const std::string& folder) {
  if (folder.empty()) {
    const std::string slower = slower_kernels_text();
    fmt::print(
        "headwise {}\nBLAS             {}\n{}instruction set  {}\nthreads          {} ({})\n",
        HEADWISE_VERSION, blas_description(),
        slower.empty() ? "" : fmt::format("{:17}{}", "", slower), kernels::isa_name(), threads(),
        threads() == default_threads()
            ? default_threads_reason()
            : fmt::format("default {}: {}", default_threads(), default_threads_reason()));
    return kDone;
  }
  const Run run = Run::open(folder);
  const RunConfig& c = run.config();
  print_options("model", c.model);
  fmt::print("  {:16} {}\n", "vocabulary", c.model.vocab);
  print_options("training", c.train);
  const std::string data = c.task.empty() ? (c.data.empty() ? "built-in stories" : c.data)
                                          : fmt::format("task {}", c.task);
  fmt::print("run\n");
  const auto line = [](const char* name, const auto& value) {
    fmt::print("  {:16} {}\n", name, value);
  };
  line("seed", c.seed);
  line("dtype", name_of(c.dtype));
  line("data", data);
  if (c.length != 0) line("length", c.length);
  line("tokenizer", name_of(run.tokenizer().kind()));
  line("BLAS", c.blas);
  fmt::print("\n");
  return with_model(run, [&](auto model) {
    for_each_param(model, [](const std::string& name, const auto& p) {
      fmt::print("{:32} {:14} {:10}\n", name, fmt::to_string(p.value.shape()), p.value.size());
    });
    fmt::print("{:32} {:14} {:10}\n", "parameters", "", parameter_count(model));
    return kDone;
  });
}

}  // namespace

Action info_command(Arguments& args, CommonOptions& common) {
  const auto folder = std::make_shared<std::string>();
  const auto test = std::make_shared<bool>(false);
  args.add_optional("run", "RUN", "run folder", *folder);
  args.bind_one("selftest", *test, "compare the BLAS's products with plain loops");
  args.exclude("--selftest", "run");
  return [folder, test, &common] { return *test ? selftest(common.seed) : info(*folder); };
}

}  // namespace headwise::cli
