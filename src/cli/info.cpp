// headwise info [RUN]: what this program runs on, or what a run is made of.
#include <fmt/format.h>

#include "cli/load.hpp"
#include "cli/options.hpp"
#include "headwise/core/gemm.hpp"
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

int info(const std::string& folder) {
  if (folder.empty()) {
    fmt::print("headwise {}\nBLAS             {}\ninstruction set  {}\nthreads          {}\n",
               HEADWISE_VERSION, blas_description(), kernels::isa_name(), threads());
    return kDone;
  }
  const Run run = Run::open(folder);
  const RunConfig& c = run.config();
  print_options("model", c.model);
  fmt::print("  {:16} {}\n", "vocabulary", c.model.vocab);
  print_options("training", c.train);
  fmt::print("run\n  {:16} {}\n  {:16} {}\n  {:16} {}\n  {:16} {}\n\n", "seed", c.seed, "dtype",
             name_of(c.dtype), "data", c.data.empty() ? "built-in stories" : c.data, "BLAS",
             c.blas);
  return with_model(run, [&](auto model) {
    for_each_param(model, [](const std::string& name, const auto& p) {
      fmt::print("{:32} {:14} {:10}\n", name, fmt::to_string(p.value.shape()), p.value.size());
    });
    fmt::print("{:32} {:14} {:10}\n", "parameters", "", parameter_count(model));
    return kDone;
  });
}

}  // namespace

std::function<int()> info_command(CLI::App& app, CommonOptions& /*common*/) {
  const auto folder = std::make_shared<std::string>();
  app.add_option("run", *folder, "run folder")->type_name("RUN");
  return [folder] { return info(*folder); };
}

}  // namespace headwise::cli
