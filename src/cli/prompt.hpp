// A prompt, as a run's model wants to see it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headwise/train/run.hpp"

namespace headwise::cli {

/// The token that is a text, if there is one.
std::optional<Id> token_of(const Tokenizer& tokenizer, std::string_view text);

struct Prompt {
  std::string text;        ///< to be shown
  std::vector<Id> tokens;  ///< never empty
  /// The text of the token that stands in for an empty prompt: a line's end, or where the run knows
  /// none its first token. Absent: the prompt is not empty.
  std::optional<std::string> stand_in{};
  /// Whether to go on after a token; null: always.
  std::function<bool(Id)> go_on;
};

/// The tokens of a prompt; for an empty one the start of a line, or a question of the run's task
/// (null: it has none) that it was not trained on. A question is completed by the tab that stands
/// before its answer, which ends with the line. Throws DataError for a character that the run does
/// not know.
Prompt prompt_of(const Run& run, const Task* task, const std::string& text, Rng& rng);

}  // namespace headwise::cli
