// A run folder: everything that continues, samples or studies a training run.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headwise/core/file.hpp"
#include "headwise/core/folder_lock.hpp"
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
  LoopOptions loop;
  Dtype dtype = Dtype::f32;
  std::uint64_t seed = 1;
  std::string data;       ///< path of the text, "-" for standard input, "" for the built-in stories
  std::string task;       ///< the task instead of a text: its name or its file
  Index length = 0;       ///< of the task's inputs; 0: its default
  std::string data_hash;  ///< of the text's or the file's bytes: a resumed run needs the same
  std::string blas;       ///< blas_description() so far: another one gives other last bits
  Index format = 1;       ///< of config.json; 0: written before it had a number
};

/// Files of a run: config.json, tokenizer.json, log.jsonl, last.safetensors, model.safetensors. Its
/// identity is a hash of what cannot change: model, tokenizer, data, precision, seed and training
/// options but those of resume(). config.json and both tensor files hold it, so a file that belongs
/// to another run, or was changed, is found when it is opened. The folder is held open: a run stays
/// in it when it is moved, and nothing goes to a folder that takes its path.
class Run {
 public:
  static constexpr const char *kConfig = "config.json", *kTokenizer = "tokenizer.json",
                              *kLog = "log.jsonl", *kLast = "last.safetensors",
                              *kModel = "model.safetensors";
  static constexpr std::array<const char*, 5> kFiles = {kConfig, kTokenizer, kLog, kLast, kModel};

  /// A new run, locked (see FolderLock). The folder is made where it is missing; what an earlier
  /// run that saved no state left in it is removed. Throws as require_free() does, and DataError
  /// when another process has the lock.
  static Run create(const std::string& folder, const RunConfig& config, const Tokenizer& tokenizer,
                    bool force = false);
  /// Throws UsageError when the folder holds a run with a saved state, DataError when another
  /// process trains in it, and, unless `force`, UsageError naming files of kFiles that are not a
  /// run's. No error for a folder that is missing.
  static void require_free(const std::string& folder, bool force = false);
  /// An existing run, to read. Throws DataError when a file is missing or is not what it should be.
  static Run open(const std::string& folder);
  /// The same, locked, to train on.
  static Run resume(const std::string& folder);

  [[nodiscard]] const std::string& folder() const { return directory_.path(); }
  [[nodiscard]] const Directory& directory() const { return directory_; }
  [[nodiscard]] const RunConfig& config() const { return config_; }
  [[nodiscard]] const Tokenizer& tokenizer() const { return tokenizer_; }
  [[nodiscard]] const std::string& identity() const { return identity_; }
  [[nodiscard]] std::string last() const { return directory_.path(kLast); }
  [[nodiscard]] std::string model() const { return directory_.path(kModel); }
  /// Why the folder is not locked, if its file system has no locks; else "".
  [[nodiscard]] std::string unlocked() const { return lock_ ? lock_->missing() : ""; }

  /// The state to resume from, and the best weights. Throws DataError when nothing was saved yet,
  /// and naming both identities when the file is another run's.
  [[nodiscard]] TensorFile state() const { return tensors(kLast); }
  [[nodiscard]] TensorFile weights() const { return tensors(kModel); }

  /// Replaces what a resumed run may change: training options, what happens beside the training,
  /// and what it runs on.
  void change(const TrainOptions& options, const LoopOptions& loop, const std::string& blas);
  /// Adds a line to log.jsonl and flushes it to the disk; the same text as `train --json` prints.
  /// A line is to be written before the state that comes after it, so a state never lacks one.
  void log(const std::string& line) const;
  /// Drops the log's lines that a run at a state of `steps` steps, last evaluated after `evaluated`
  /// of them, will write again; and what is no such line at all.
  void rewind_log(Index steps, Index evaluated) const;

 private:
  Run(Directory directory, std::shared_ptr<const FolderLock> lock, const RunConfig& config,
      Tokenizer tokenizer);
  static void require_replaceable(const Directory& directory, bool force);
  static Run opened(Directory directory, std::shared_ptr<const FolderLock> lock);
  [[nodiscard]] TensorFile tensors(const char* name) const;

  Directory directory_;
  std::shared_ptr<const FolderLock> lock_;  // null: only read
  RunConfig config_;
  Tokenizer tokenizer_;
  std::string identity_;
};

/// Saves weights as the best of a run.
template <Real T>
void save_model(const Run& run, Decoder<T>& model);

/// Saves a run at a step's end: first the best weights if these are the best (or the only ones),
/// then the state to resume from. Throws Error, and replaces nothing, when a weight or a moment is
/// not finite, naming it.
template <Real T>
void save_run(const Run& run, const Trainer<T>& trainer, Decoder<T>& model, bool best);

/// The model of a run, with its best weights. Names of tensors that are not finite go to
/// `not_finite`.
template <Real T>
Decoder<T> load_model(const Run& run, std::vector<std::string>& not_finite);

}  // namespace headwise
