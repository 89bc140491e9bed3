// Signals that ask the program to stop: work that keeps a state saves it first.
#pragma once

namespace headwise::cli {

/// While alive, SIGINT, SIGTERM, SIGHUP and SIGXCPU (the soft limit on processor time) are noted
/// instead of ending the process; a second one ends it at once. Those that were ignored when the
/// program started, as under nohup, stay ignored. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Whether one came.
  [[nodiscard]] static bool requested();
  /// The exit code when all is saved: 0 without a signal or after Ctrl-C (SIGINT), which is no
  /// failure; 128 + n after another signal n.
  [[nodiscard]] static int exit_code();
};

}  // namespace headwise::cli
