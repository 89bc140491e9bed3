// The training loop, a step at a time. It prints nothing: it returns records.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "headwise/data/text.hpp"
#include "headwise/models/decoder.hpp"
#include "headwise/train/adamw.hpp"

namespace headwise {

/// How a model is trained. visit() serves the command line, its help and the saved configuration.
struct TrainOptions {
  Index batch = 12, accumulate = 1, steps = 2000;
  double lr = 1e-3, min_lr = 1e-4;
  Index warmup = 100;
  double weight_decay = 0.1, beta1 = 0.9, beta2 = 0.99, clip = 1;
  Index eval_every = 250, eval_batches = 20;

  void visit(auto&& v) {
    v("batch", batch, "sequences in a batch");
    v("accumulate", accumulate, "batches whose gradients are added up for one step");
    v("steps", steps, "optimiser steps");
    v("lr", lr, "highest learning rate");
    v("min-lr", min_lr, "learning rate at the end of the cosine");
    v("warmup", warmup, "steps in which the learning rate rises");
    v("weight-decay", weight_decay, "AdamW's decay of matrices");
    v("beta1", beta1, "AdamW's decay of the gradient's mean");
    v("beta2", beta2, "AdamW's decay of the gradient's square");
    v("clip", clip, "largest global gradient norm; 0: no clipping");
    v("eval-every", eval_every, "steps between evaluations");
    v("eval-batches", eval_batches, "batches of an evaluation");
  }
  /// Throws UsageError, naming option and value.
  void validate() const;
};

/// Learning rate of a step (0-based): lr (s+1)/(warmup+1) while it warms up, then half a cosine
/// from lr down to min_lr at `steps` (Loshchilov and Hutter 2017, arXiv:1608.03983, eq. 5).
double learning_rate(const TrainOptions& o, Index step);

/// Loss of some text: mean nats a token, over how many.
struct Loss {
  double mean = 0;
  Index tokens = 0;
};

/// Mean loss over the batches an evaluation draws from `tokens`: the same ones at every call, in
/// every run. Nothing is recorded, nothing is dropped.
template <Real T>
Loss evaluate(const Decoder<T>& model, const std::vector<Id>& tokens, Index batch, Index batches);

/// Mean loss over a whole text: windows of the model's context, side by side, every token but the
/// first predicted once. Throws DataError for fewer than two tokens.
template <Real T>
Loss evaluate_all(const Decoder<T>& model, const std::vector<Id>& tokens);

/// One optimiser step, as it happened.
struct StepRecord {
  Index step = 0;        ///< updates done, this one included
  double loss = 0;       ///< of its batches, before the update
  double grad_norm = 0;  ///< before clipping
  double lr = 0;         ///< used in this step
};

/// One evaluation.
struct EvalRecord {
  Index step = 0;         ///< updates done
  double train_loss = 0;  ///< mean of the steps since the last evaluation
  double val_loss = 0;
  double lr = 0;      ///< of the last step
  bool best = false;  ///< the lowest val_loss so far
};

/// Trains a decoder on a text. Everything random is a function of (seed, step), so that a run that
/// stops and resumes is the same run to the bit, at any number of threads.
template <Real T>
class Trainer {
 public:
  /// Throws UsageError as options.validate() does. The model is the caller's and is trained in
  /// place.
  Trainer(Decoder<T>& model, const TrainOptions& options, const Split& text, std::uint64_t seed);

  /// One update. Throws Error, before anything has changed, when the loss or a gradient is not
  /// finite, or a trainable parameter got no gradient; the message names step, rate and parameter.
  StepRecord step();
  EvalRecord evaluate();

  [[nodiscard]] Index steps_done() const { return steps_done_; }
  [[nodiscard]] bool done() const { return steps_done_ >= options_.steps; }
  [[nodiscard]] double val_loss() const { return val_loss_; }  ///< of the last evaluation
  [[nodiscard]] double best_val_loss() const { return best_val_loss_; }

  /// Writes weights, moments, counters and random state as one file, replaced in one step.
  void save(const std::string& path) const;
  /// Goes on where save() was called. Throws DataError when the file does not fit the model.
  void load(const std::string& path);

 private:
  Decoder<T>& model_;
  TrainOptions options_;
  const Split& text_;
  std::uint64_t seed_;
  AdamW<T> adam_;
  Index steps_done_ = 0;
  double lr_ = 0;
  double loss_sum_ = 0;  // since the last evaluation
  Index loss_count_ = 0;
  double val_loss_ = std::numeric_limits<double>::quiet_NaN();
  double best_val_loss_ = std::numeric_limits<double>::infinity();
};

/// The model's weights alone, by parameter name, for any reader of safetensors.
template <Real T>
void save_weights(Decoder<T>& model, const std::string& path);
/// Throws DataError for a missing or additional name and for a shape that is not the model's,
/// naming tensor and both shapes. Returns names of tensors with a value that is not finite.
template <Real T>
std::vector<std::string> load_weights(Decoder<T>& model, const std::string& path);

}  // namespace headwise
