// Tasks: short sequences, made or read from a file, of which only some characters are to be
// predicted.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headwise/core/function_ref.hpp"
#include "headwise/core/random.hpp"
#include "headwise/data/text.hpp"

namespace headwise {

/// One sequence of a task: its characters, and which of them are to be predicted.
struct Example {
  std::string text;                   ///< UTF-8
  std::vector<std::uint8_t> counted;  ///< one a character (code point); 1: loss and accuracy count
                                      ///< it. The first is 0: nothing stands before it
};

/// What makes an answer right.
enum class Accuracy {
  whole,  ///< all counted characters of a sequence together: exact match
  each    ///< every counted character by itself
};

/// Sequences to train on and sequences to validate on. A hash of an example's input, the part that
/// the answer follows from, decides which it is for: about one input in ten validates, and the two
/// parts never share one, whatever the seed (but see shared()).
class Task {
 public:
  virtual ~Task() = default;

  /// What `--task` takes: a name of task_table(), or the path of a file.
  [[nodiscard]] virtual std::string name() const = 0;
  /// One line on what a sequence is.
  [[nodiscard]] virtual std::string about() const = 0;
  /// Every character that may occur, as UTF-8, sorted by code point and each once.
  [[nodiscard]] virtual std::vector<std::string> alphabet() const = 0;
  /// Characters of the longest sequence. A model reads one fewer: nothing follows the last.
  [[nodiscard]] virtual Index longest() const = 0;
  [[nodiscard]] virtual Accuracy accuracy() const = 0;

  /// One draw of each part, by `rng` alone: the same seed gives the same examples on every
  /// platform. At least one character of each is counted.
  [[nodiscard]] virtual Example train(Rng& rng) const = 0;
  [[nodiscard]] virtual Example valid(Rng& rng) const = 0;
  /// Different examples in each part; 0: drawn without end.
  [[nodiscard]] virtual Index train_size() const { return 0; }
  [[nodiscard]] virtual Index valid_size() const { return 0; }
  /// Number i of the valid_size() ones. Throws ShapeError where there is none.
  [[nodiscard]] virtual Example valid_example(Index i) const;
  /// text_hash() of the file; "" where there is none.
  [[nodiscard]] virtual std::string hash() const { return ""; }
  /// Too few examples to part: both parts are all of them.
  [[nodiscard]] virtual bool shared() const { return false; }
};

/// What a generated task is: src/data/tasks/<name>.cpp defines it, tasks.def lists it.
struct TaskSpec {
  std::string name, about;
  std::string_view alphabet;                 ///< its characters, in any order
  Index length = 0, least = 1;               ///< --length: the default and the smallest
  Index (*longest)(Index length) = nullptr;  ///< characters of the longest sequence
  Accuracy accuracy = Accuracy::whole;
  std::string (*input)(Index length, Rng& rng) = nullptr;  ///< draws what the answer follows from
  Example (*example)(const std::string& input) = nullptr;  ///< the sequence of an input
};

/// The greatest --length of a generated task.
inline constexpr Index kGreatestLength = 65536;

/// prompt, tab, answer, newline. The answer and the newline count, so that a model learns to stop.
Example line_example(std::string_view prompt, std::string_view answer);

namespace tasks {
#define HEADWISE_TASK(name) TaskSpec name();
#include "headwise/data/tasks.def"
#undef HEADWISE_TASK
}  // namespace tasks

/// Every generated task, in the order of tasks.def.
std::vector<TaskSpec> task_table();
/// Their names.
std::vector<std::string> task_names();

/// Whether `--task` means a file by it: there is a '.' or '/' in it.
bool is_task_file(std::string_view name);

/// The task of a name, or of a file (see is_task_file()). `length` is that of the
/// generated sequences, 0: the task's default.
///
/// A file is UTF-8 with one example a line: prompt, tab, answer. Lines end with LF or CRLF; empty
/// ones may stand at the end. A line that stands there twice is one example.
///
/// Throws UsageError for an unknown name, a length out of range, or one given for a file; DataError
/// naming file and line for what is wrong in a file, and for two answers to one prompt.
std::unique_ptr<Task> make_task(const std::string& name_or_file, Index length = 0);

/// Examples of a task as sequences, each padded at the end to the longest with the newline's id.
/// Targets that do not count, those of the padding among them, are kIgnore.   inputs, targets
/// (B,T), T = longest - 1. `encode` gives one id a character, as Tokenizer does for characters;
/// throws ShapeError when it does not.
Batch task_batch(const Task& task, FunctionRef<std::vector<Id>(std::string_view)> encode,
                 const std::vector<Example>& examples);
/// The same of `batch` examples of a part, drawn by rng.
Batch task_batch(const Task& task, FunctionRef<std::vector<Id>(std::string_view)> encode,
                 bool valid, Index batch, Rng& rng);

}  // namespace headwise
