// The training loop, a step at a time. It prints nothing: it returns records.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "headwise/core/safetensors.hpp"
#include "headwise/data/source.hpp"
#include "headwise/models/decoder.hpp"
#include "headwise/train/adamw.hpp"
#include "headwise/train/evaluate.hpp"
#include "headwise/train/options.hpp"

namespace headwise {

/// One optimiser step, as it happened.
struct StepRecord {
  Index step = 0;        ///< updates done, this one included
  double loss = 0;       ///< of its batches, before the update
  double grad_norm = 0;  ///< before clipping
  double lr = 0;         ///< used in this step
  Index tokens = 0;      ///< that went through the model
};

/// One evaluation.
struct EvalRecord {
  Index step = 0;         ///< updates done
  double train_loss = 0;  ///< mean of the steps since the last evaluation
  double val_loss = 0;
  std::optional<double> val_accuracy{};  ///< of a task
  Index val_right = 0, val_answers = 0;  ///< of a task
  bool val_each_once = false;            ///< the whole validation part, not draws from it
  double lr = 0;                         ///< of the last step
  bool best = false;                     ///< the lowest val_loss so far
};

/// Trains a decoder. Everything random is a function of (seed, step), so that a run that
/// stops and resumes is the same run to the bit, at any number of threads.
template <Real T>
class Trainer {
 public:
  /// Throws UsageError as options.validate() and freeze() do, and for a rate that is not finite in
  /// precision T. Model and source are the caller's; the model is trained in place.
  Trainer(Decoder<T>& model, const TrainOptions& options, const Source& source, std::uint64_t seed);

  /// One update. Throws, before anything has changed, Error when none of its labels counts or a
  /// trainable parameter got no gradient, and NotFinite when the loss or a gradient is not finite:
  /// the message has step, rate, and the first op and tensor where that arose (the step's passes
  /// run again, and every number is looked at). Throws NotFinite, by the parameter's name, when the
  /// update has made a weight not finite: then this trainer's state is lost, and save() refuses it.
  StepRecord step();
  /// The loss on the evaluation batches, or nothing, and nothing changed, once keep_going() is
  /// false. Throws as headwise::evaluate() does.
  std::optional<EvalRecord> evaluate(FunctionRef<bool()> keep_going);
  EvalRecord evaluate() {
    return *evaluate([] { return true; });
  }

  /// Measures from now on where each step's time goes; null: no more.
  void profile(Profile* to) { profile_ = to; }

  [[nodiscard]] Index steps_done() const { return state_.steps; }
  /// Updates done at the last evaluation.
  [[nodiscard]] Index evaluated() const { return state_.evaluated; }
  /// Whether an evaluation is due: every eval_every steps, and at the end.
  [[nodiscard]] bool evaluation_due() const {
    return state_.steps > state_.evaluated && (state_.steps % options_.eval_every == 0 || done());
  }
  [[nodiscard]] bool done() const { return state_.steps >= options_.steps; }
  [[nodiscard]] double val_loss() const { return state_.val_loss; }  ///< of the last evaluation
  [[nodiscard]] double best_val_loss() const { return state_.best_val_loss; }

  /// Adds weights, moments, counters and random state to a file. Throws NotFinite naming a weight
  /// or a moment that is not finite: such a state must not replace a good one.
  void save(TensorFileWriter& file) const;
  /// The same as one file, replaced in one step.
  void save(const std::string& path) const;
  /// Goes on where save() was called, bit for bit. Throws DataError when the file does not fit the
  /// model or is damaged, before anything is replaced. When reading fails later, the trainer is not
  /// whole.
  void load(const TensorFile& file);
  void load(const std::string& path) { load(TensorFile(path)); }

 private:
  /// Forward and backward of one batch's groups, side by side. Adds to the gradients, in the order
  /// of the groups, and returns the batch's part of the mean loss over `total` tokens.
  /// Where that is not finite, no gradients are added.
  double add_gradients(const std::vector<Batch>& groups, Index total, Rng& dropout);
  /// Throws NotFinite: what happened, and where it arose.
  [[noreturn]] void fail(const StepRecord& record, const std::string& what,
                         const std::vector<std::vector<Batch>>& batches, Index total);

  Decoder<T>& model_;
  TrainOptions options_;
  const Source& source_;
  AdamW<T> adam_;
  Profile* profile_ = nullptr;
  Index parameters_ = 0;  // trained numbers
  /// Everything but weights and moments that a resumed run needs.
  struct State {
    Index steps = 0;      ///< updates done
    double lr = 0;        ///< of the last step
    double loss_sum = 0;  ///< since the last evaluation
    Index loss_count = 0;
    Index evaluated = 0;  ///< updates done at the last evaluation
    double val_loss = std::numeric_limits<double>::quiet_NaN();
    double best_val_loss = std::numeric_limits<double>::infinity();
    std::uint64_t seed = 0;

    void visit(auto&& v) {
      v("steps", steps);
      v("lr", lr);
      v("loss_sum", loss_sum);
      v("loss_count", loss_count);
      v("evaluated", evaluated);
      v("val_loss", val_loss);
      v("best_val_loss", best_val_loss);
      v("seed", seed);
    }
  };
  State state_;
};

}  // namespace headwise
