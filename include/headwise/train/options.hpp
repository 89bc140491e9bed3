// How a model is trained, and the learning rate that follows.
#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headwise/core/parse.hpp"
#include "headwise/core/shape.hpp"

namespace headwise {

/// How the learning rate goes down after the warm-up; see learning_rate().
enum class Schedule { cosine, linear, constant, wsd };
constexpr std::array<std::string_view, 4> names_of(Schedule) {
  return {"cosine", "linear", "constant", "wsd"};
}

/// How a model is trained. visit() serves the command line, its help and the saved configuration.
struct TrainOptions {
  Index batch = 12, accumulate = 1, steps = 2000;
  double lr = 1e-3, min_lr = 1e-4;
  Index warmup = 100;
  Schedule schedule = Schedule::cosine;
  double weight_decay = 0.1, beta1 = 0.9, beta2 = 0.99, clip = 1;
  Index eval_every = 250, eval_batches = 20;
  std::string freeze{};

  void visit(auto&& v) {
    v("batch", batch, "sequences in a batch");
    v("accumulate", accumulate, "batches whose gradients are added up for one step");
    v("steps", steps, "optimiser steps");
    v("lr", lr, "highest learning rate");
    v("min-lr", min_lr, "learning rate at the end of the schedule");
    v("warmup", warmup, "steps in which the learning rate rises");
    v("schedule", schedule,
      "cosine, linear, constant or wsd (constant, then linear over the last tenth)");
    v("weight-decay", weight_decay, "AdamW's decay of matrices");
    v("beta1", beta1, "AdamW's decay of the gradient's mean");
    v("beta2", beta2, "AdamW's decay of the gradient's square");
    v("clip", clip, "largest global gradient norm; 0: no clipping");
    v("eval-every", eval_every, "steps between evaluations");
    v("eval-batches", eval_batches, "batches of an evaluation");
    v("freeze", freeze, "parameters left as they are: names with * and commas, as blocks.0.*");
  }
  /// Throws UsageError, naming option and value.
  void validate() const;
};

/// What happens beside the training: nothing that is trained depends on it.
struct LoopOptions {
  Index save_every = 0, sample_every = 0, study_every = 0;

  void visit(auto&& v) {
    v("save-every", save_every, "steps between saved states; 0: at each evaluation");
    v("sample-every", sample_every, "steps between samples shown; 0: none");
    v("study-every", study_every, "steps between looks at what each head does, logged; 0: none");
  }
  /// Throws UsageError, naming option and value.
  void validate() const;
};

/// Every option as a name and a text, in the order of its visit().
template <class Options>
std::vector<std::pair<std::string, std::string>> option_texts(Options options) {
  std::vector<std::pair<std::string, std::string>> all;
  options.visit([&]<class T>(const char* name, const T& member, const char*) {
    if constexpr (Named<T>)
      all.emplace_back(name, name_of(member));
    else
      all.emplace_back(name, fmt::to_string(member));
  });
  return all;
}

/// Learning rate of a step (0-based): lr (s+1)/(warmup+1) while it warms up; then, down to min_lr
/// at `steps`,
///   cosine: half a cosine (Loshchilov and Hutter 2017, arXiv:1608.03983, eq. 5),
///   linear: a straight line,
///   wsd: lr, and a straight line in the last tenth of the steps (warm-up, stable, decay: Hu et al.
///     2024, arXiv:2404.06395, sec. 4.2, which finds a tenth to be enough);
/// constant stays at lr.
double learning_rate(const TrainOptions& o, Index step);

}  // namespace headwise
