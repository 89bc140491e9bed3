// What a run learns from: a text or a task, found again when the run goes on.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headwise/data/source.hpp"
#include "headwise/train/run.hpp"

namespace headwise::cli {

/// f(), with `what` in front of the message of a DataError.
template <class F>
auto about(const std::string& what, F f) {
  try {
    return f();
  } catch (const DataError& e) {
    throw DataError(fmt::format("{}: {}", what, e.what()));
  }
}

/// A path that is right from every folder; "-" and "" stay what they are.
inline std::string lasting_path(const std::string& path) {
  return path.empty() || path == "-" ? path : std::filesystem::absolute(path).string();
}

/// A source, the tokens it speaks in, and what the user should know about it.
struct Material {
  Material(Tokenizer t, std::string hash_of_file)
      : tokenizer(std::move(t)), hash(std::move(hash_of_file)) {}

  std::unique_ptr<const Source> source;
  Tokenizer tokenizer;
  std::string hash;            ///< of the bytes of the file behind it; "" for a task drawn anew
  double bytes_per_token = 1;  ///< so that losses compare across tokenizers
  std::string about;           ///< one line
  std::vector<std::string> notes{};  ///< more lines
};

/// How a text is cut into tokens: learned from it, or as an earlier run did.
struct Tokens {
  TokenizerKind kind = TokenizerKind::character;
  Index min_count = 2;
  std::optional<Tokenizer> known;
};

/// The windows of a text. Throws DataError naming it.
Material text_material(const std::string& path, const Tokens& tokens, Index context);
/// The sequences of a task; `known` as in Tokens.
Material task_material(std::unique_ptr<const Task> task, const std::optional<Tokenizer>& known);

/// The task of a run. Throws DataError naming config.json when there is no such task.
std::unique_ptr<const Task> task_of(const Run& run);

/// A text that the user gives to a run that was trained on one.
struct GivenText {
  std::vector<Id> tokens;        ///< in the run's vocabulary
  std::optional<bool> held_out;  ///< false: it is what the run was trained on; absent: not known
  std::string what;              ///< "training text", or the path, for messages
};
/// Throws DataError, naming the path, when it cannot be read or has unknown characters.
GivenText given_text(const Run& run, const std::string& path);

/// What a run was trained on, found again: where it was, or for a text at `path` if that is given.
/// Throws DataError when it is not the same any more.
Material material_of_run(const Run& run, const std::string& path);

}  // namespace headwise::cli
