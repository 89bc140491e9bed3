#include "cli/prompt.hpp"

#include <algorithm>
#include <optional>

#include "cli/material.hpp"

namespace headwise::cli {

std::optional<Id> token_of(const Tokenizer& tokenizer, std::string_view text) {
  const auto& known = tokenizer.tokens();
  const auto found = std::find(known.begin(), known.end(), text);
  if (found == known.end()) return std::nullopt;
  return static_cast<Id>(found - known.begin());
}

Prompt prompt_of(const Run& run, const Task* task, const std::string& text, Rng& rng) {
  const Tokenizer& tokenizer = run.tokenizer();
  Prompt prompt{.text = text, .tokens = {}, .go_on = nullptr};
  const std::optional<Id> tab = token_of(tokenizer, "\t"), newline = token_of(tokenizer, "\n");
  const bool question = task != nullptr && tab && newline;
  if (question) {
    prompt.go_on = [end = *newline](Id id) { return id != end; };
    if (text.empty()) prompt.text = task->valid(rng).text;
    prompt.text = prompt.text.substr(0, prompt.text.find('\t')) + '\t';
  }
  prompt.tokens = about("--prompt", [&] { return tokenizer.encode(prompt.text); });
  if (prompt.tokens.empty()) {
    prompt.tokens = {newline.value_or(0)};
    prompt.stand_in = tokenizer.decode(prompt.tokens);
  }
  return prompt;
}

}  // namespace headwise::cli
