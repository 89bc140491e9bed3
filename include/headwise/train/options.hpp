// How a model is trained, and the learning rate that follows.
#pragma once

#include "headwise/core/shape.hpp"

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

}  // namespace headwise
