// A run folder: everything that continues, samples or studies a training run.
#pragma once

#include <string>
#include <vector>

#include "headwise/data/tokenizer.hpp"
#include "headwise/train/trainer.hpp"
#include "headwise/train/weights.hpp"

namespace headwise {

/// Precision of a run.
enum class Dtype { f32, f64 };
constexpr std::array<std::string_view, 2> names_of(Dtype) { return {"f32", "f64"}; }

/// What a run was started with; config.json.
struct RunConfig {
  ModelConfig model;
  TrainOptions train;
  Dtype dtype = Dtype::f32;
  std::uint64_t seed = 1;
  std::string data;       ///< path of the text, "-" for standard input, "" for the built-in stories
  std::string task;       ///< the task instead of a text: its name or its file
  Index length = 0;       ///< of the task's inputs; 0: its default
  std::string data_hash;  ///< of the text's or the file's bytes: a resumed run needs the same
  std::string blas;       ///< blas_description() so far: another one gives other last bits
};

/// Files of a run: config.json, tokenizer.json, log.jsonl, last.safetensors, model.safetensors.
class Run {
 public:
  /// A new folder. Throws UsageError when it holds a run already.
  static Run create(const std::string& folder, const RunConfig& config, const Tokenizer& tokenizer);
  /// An existing one. Throws DataError when a file is missing or is not what it should be.
  static Run open(const std::string& folder);

  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] const RunConfig& config() const { return config_; }
  [[nodiscard]] const Tokenizer& tokenizer() const { return tokenizer_; }
  [[nodiscard]] std::string last() const { return folder_ + "/last.safetensors"; }
  [[nodiscard]] std::string model() const { return folder_ + "/model.safetensors"; }

  /// Replaces the training options, as a resumed run with more steps does, and what it runs on.
  void change(const TrainOptions& options, const std::string& blas);
  /// Adds a line to log.jsonl; the same text as `train --json` prints.
  void log(const std::string& line) const;
  /// Drops the log's lines of an event ("eval", "study") at steps after `step`: they will be
  /// written again. What is no such line at all is dropped with them.
  void forget_after(std::string_view event, Index step) const;

 private:
  Run(std::string folder, const RunConfig& config, Tokenizer tokenizer);
  [[nodiscard]] std::string config_text() const;

  std::string folder_;
  RunConfig config_;
  Tokenizer tokenizer_;
};

/// Saves a run at a step's end: first the best weights if these are the best (or the only ones),
/// then the state to resume from.
template <Real T>
void save_run(const Run& run, const Trainer<T>& trainer, Decoder<T>& model, bool best);

/// The model of a run, with its best weights. Names of tensors that are not finite go to
/// `not_finite`.
template <Real T>
Decoder<T> load_model(const Run& run, std::vector<std::string>& not_finite);

}  // namespace headwise
