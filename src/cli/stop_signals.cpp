#include "cli/stop_signals.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <iterator>

namespace headwise::cli {
namespace {

constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU};
struct sigaction previous_actions[std::size(kStopSignals)];

volatile std::sig_atomic_t stop_signal = 0;  // the one that came; 0: none

extern "C" void on_stop_signal(int signal) {
  if (stop_signal != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // ends the process when this handler returns
    return;
  }
  stop_signal = signal;
  const int saved = errno;
  static constexpr char kSaid[] = "\nstopping after this step; once more to stop at once\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kSaid, sizeof kSaid - 1);
  errno = saved;
}

}  // namespace

StopSignals::StopSignals() {
  stop_signal = 0;
  struct sigaction action = {};
  action.sa_handler = on_stop_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // a save or a full pipe goes on: the step is finished first
  for (std::size_t i = 0; i < std::size(kStopSignals); ++i) {
    ::sigaction(kStopSignals[i], nullptr, &previous_actions[i]);
    if (previous_actions[i].sa_handler != SIG_IGN) ::sigaction(kStopSignals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < std::size(kStopSignals); ++i)
    ::sigaction(kStopSignals[i], &previous_actions[i], nullptr);
}

bool StopSignals::requested() { return stop_signal != 0; }

int StopSignals::exit_code() {
  return stop_signal == 0 || stop_signal == SIGINT ? 0 : 128 + stop_signal;
}

}  // namespace headwise::cli
