// headwise COMMAND [ARGUMENTS] [--option VALUE]: reads the command line and reports errors.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "cli/options.hpp"
#include "headwise/core/gemm.hpp"
#include "headwise/core/parallel.hpp"
#include "kernels/isa.hpp"

namespace headwise::cli {
namespace {

struct Row {
  const char* name;
  const char* help;
  Command command;
};

constexpr Row kCommands[] = {
    {"train", "train a model on a text or a task; writes a run folder", train_command},
    {"sample", "continue a prompt with a trained model", sample_command},
    {"eval", "loss, bits per token and byte, perplexity of a trained model; a task's right answers",
     eval_command},
    {"gradcheck", "compare gradients with finite differences, in double", gradcheck_command},
    {"study", "what each head of a trained model does: scores, ablations, pictures", study_command},
    {"data", "write the stories or a task's sequences, or show what is known of them",
     data_command},
    {"bench", "speed on this machine", bench_command},
    {"info", "version, BLAS, instruction set, threads; or a run's configuration", info_command},
};

/// CLI11's complaint in our form: what is wrong, with what was given.
std::string complaint(const CLI::App& app, const CLI::ParseError& e) {
  std::string where = "headwise";
  std::vector<std::string> extra = app.remaining();
  for (const CLI::App* sub : app.get_subcommands()) {
    where += " " + sub->get_name();
    for (const std::string& text : sub->remaining()) extra.push_back(text);
  }
  // The option, not the value that stands behind it.
  const auto option = std::find_if(extra.begin(), extra.end(),
                                   [](const std::string& text) { return text.starts_with("-"); });
  std::string what = e.what();
  if (!extra.empty())
    what = fmt::format("unknown argument '{}'", option == extra.end() ? extra.front() : *option);
  return fmt::format("{}; see {} --help", what, where);
}

int run(int argc, char** argv) {
  CLI::App app("Train small transformers, prove their gradients, see what each head learned.",
               "headwise");
  app.require_subcommand(1);
  app.set_version_flag("--version", HEADWISE_VERSION);
  CommonOptions common;
  if (argc > 0) common.program = argv[0];
  std::function<int()> chosen;
  for (const Row& row : kCommands) {
    CLI::App& sub = *app.add_subcommand(row.name, row.help);
    bind(sub, common);
    sub.callback([&chosen, action = row.command(sub, common)] { chosen = action; });
  }
  try {
    app.parse(argc, argv);
    require<UsageError>(common.threads >= 0 && common.threads <= 1024,
                        "--threads: {} is not from 0 to 1024", common.threads);
    if (common.threads != 0) set_threads(static_cast<int>(common.threads));
    if (const char* isa = std::getenv("HEADWISE_ISA")) kernels::limit_isa(isa);
    const int code = chosen();
    const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    require<Error>(written, "standard output: cannot be written");
    return code;
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    fmt::print(stderr, "headwise: {}\n", complaint(app, e));
    return kUsage;
  } catch (const UsageError& e) {
    fmt::print(stderr, "headwise: {}\n", e.what());
    return kUsage;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "headwise: out of memory\n");
    return kFailed;
  } catch (const std::exception& e) {
    fmt::print(stderr, "headwise: {}\n", e.what());
    return kFailed;
  }
}

}  // namespace
}  // namespace headwise::cli

namespace {

/// Two libraries read the environment only when a program starts. Sets what they should find there,
/// unless the user has, and says whether anything had to be set.
bool set_environment() {
  bool changed = false;
  // Threads that wait spin for a while: GCC's OpenMP so long that on a busy machine a step takes
  // ten times as long.
  if (std::getenv("GOMP_SPINCOUNT") == nullptr && std::getenv("OMP_WAIT_POLICY") == nullptr)
    changed |= ::setenv("GOMP_SPINCOUNT", "2000", 1) == 0;
  const std::string kernel = headwise::better_blas_kernel();
  if (!kernel.empty() && std::getenv("OPENBLAS_CORETYPE") == nullptr)
    changed |= ::setenv("OPENBLAS_CORETYPE", kernel.c_str(), 1) == 0;
  return changed;
}

}  // namespace

int main(int argc, char** argv) {
  if (set_environment())
    ::execv("/proc/self/exe", argv);  // returns only where that does not work: then go on as we are
  return headwise::cli::run(argc, argv);
}
