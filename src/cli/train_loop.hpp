// The training loop as a person sees it: what is printed, logged and saved on the way.
#pragma once

#include "cli/material.hpp"
#include "headwise/train/trainer.hpp"

namespace headwise::cli {

/// What happens beside the training itself.
struct LoopOptions {
  Index save_every = 0, sample_every = 0, study_every = 0, stop_after = 0;
  bool json_lines = false;

  void visit(auto&& v) {
    v("save-every", save_every, "steps between saved states; 0: at each evaluation");
    v("sample-every", sample_every, "steps between samples shown; 0: none");
    v("study-every", study_every, "steps between looks at what each head does, logged; 0: none");
    v("stop-after", stop_after, "stop after this many steps of this call, saved; 0: do not");
    v("json", json_lines, "JSON lines on stdout, nothing else");
  }
  /// Throws UsageError, naming option and value.
  void validate() const;
};

/// Steps, evaluates and saves until the run is done, Ctrl-C is pressed or stop_after is reached;
/// `program` is its name in advice. Nothing that is trained depends on these options.
template <Real T>
void train_loop(const LoopOptions& options, const std::string& program, const Run& run,
                const Material& material, Trainer<T>& trainer, Decoder<T>& model);

}  // namespace headwise::cli
