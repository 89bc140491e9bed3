// The training loop as a person sees it: what is printed, logged and saved on the way.
#pragma once

#include "cli/material.hpp"
#include "headwise/train/trainer.hpp"

namespace headwise::cli {

/// What one call of the program does; nothing of it is kept for the next.
struct CallOptions {
  Index stop_after = 0;
  bool json_lines = false, force = false;

  void visit(auto&& v) {
    v("stop-after", stop_after, "stop after this many steps of this call, saved; 0: do not");
    v("json", json_lines, "JSON lines on stdout, nothing else");
    v("force", force, "with --out: replace files in the folder that headwise did not write");
  }
  /// Throws UsageError, naming option and value.
  void validate() const;
};

/// The steps between the looks at heads in a run's log, for a run that does not say; 0: none.
Index studied_every(const Run& run);

/// Steps, evaluates and saves until the run is done, a signal asks it to stop or stop_after is
/// reached; returns the exit code, see StopSignals. When standard output fails, the state is saved
/// before the exception leaves.
/// `program` is its name in advice. The log's lines are written before the state that counts
/// them. Throws Error, saying what is saved and how to go back, when training does not stay finite.
template <Real T>
int train_loop(const CallOptions& options, const std::string& program, const Run& run,
               const Material& material, Trainer<T>& trainer, Decoder<T>& model);

}  // namespace headwise::cli
