// The text a run is about, and errors that say where it came from.
#pragma once

#include <filesystem>
#include <string>

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

/// The text at `path`; the built-in stories for no path.
inline std::string text_of(const std::string& path) {
  return path.empty() ? std::string(builtin_text()) : read_text(path);
}

/// A path that is right from every folder; "-" and "" stay what they are.
inline std::string lasting_path(const std::string& path) {
  return path.empty() || path == "-" ? path : std::filesystem::absolute(path).string();
}

/// The text a run was trained on, found again: where it was, or at `path` if that is given.
inline std::string text_of_run(const Run& run, const std::string& path) {
  const std::string& from = path.empty() ? run.config().data : path;
  require<UsageError>(!path.empty() || from != "-",
                      "--data: {} was trained from standard input; give its text again",
                      run.folder());
  const std::string text = text_of(from);
  require<DataError>(text_hash(text) == run.config().data_hash,
                     "{}: the text '{}' is not the one the run was started with (hash {}, was {})",
                     run.folder(), from, text_hash(text), run.config().data_hash);
  return text;
}

/// "812 words and characters, 3.21 bytes a token": what a text was cut into.
inline std::string vocabulary_text(const Tokenizer& tokenizer, const std::vector<Id>& tokens) {
  static constexpr std::array<std::string_view, 3> kWhat = {"different characters", "byte values",
                                                            "words and characters"};
  return fmt::format(
      "{} {}, {:.2f} bytes a token", tokenizer.vocab(),
      kWhat[static_cast<std::size_t>(tokenizer.kind())],
      static_cast<double>(tokenizer.bytes(tokens)) / static_cast<double>(tokens.size()));
}

}  // namespace headwise::cli
