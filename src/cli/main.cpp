// headwise COMMAND [ARGUMENTS] [--option VALUE]: reads the command line and reports errors.
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <system_error>

#include "cli/message.hpp"
#include "cli/options.hpp"
#include "headwise/core/init.hpp"
#include "headwise/core/parallel.hpp"
#include "kernels/isa.hpp"

namespace headwise::cli {
namespace {

constexpr Command kCommands[] = {
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

/// A write into a closed pipe or beyond the limit on a file's size is an error of that write, not
/// the end of the process in the middle of a save.
void fail_writes_without_signals() {
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
}

/// Whose output is not read any more ends as every program does: without a word, by SIGPIPE.
void end_by_broken_pipe(const std::error_code& code) {
  if (code != std::errc::broken_pipe) return;
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
}

int run(int argc, char** argv) {
  fail_writes_without_signals();
  CommonOptions common;
  if (argc > 0) common.program = argv[0];
  try {
    const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
    const Action action = read_command_line(words, kCommands, common);
    require<UsageError>(common.threads >= 0 && common.threads <= 1024,
                        "--threads: must be in [0, 1024], got {}", common.threads);
    if (common.threads != 0) set_threads(static_cast<int>(common.threads));
    if (const int asked = threads(); make_threads() < asked)
      print_message("note: the system lets this process have {} of {} threads\n", threads(), asked);
    if (const char* isa = std::getenv("HEADWISE_ISA")) kernels::limit_isa(isa);
    const int code = action();
    flush_output();
    if (std::ferror(stdout) != 0) throw std::system_error(EIO, std::generic_category());
    return code;
  } catch (const UsageError& e) {
    print_message("headwise: {}\n", e.what());
    return kUsage;
  } catch (const std::system_error& e) {
    if (std::ferror(stdout) == 0) {
      print_message("headwise: {}\n", e.what());
      return kFailed;
    }
    end_by_broken_pipe(e.code());
    print_message("headwise: standard output: cannot be written: {}\n", e.code().message());
    return kFailed;
  } catch (const std::bad_alloc&) {
    print_message("headwise: out of memory\n");
    return kFailed;
  } catch (const std::exception& e) {
    print_message("headwise: {}\n", e.what());
    return kFailed;
  }
}

}  // namespace
}  // namespace headwise::cli

int main(int argc, char** argv) {
  headwise::init(argc, argv);
  return headwise::cli::run(argc, argv);
}
