#include "cli/prompt.hpp"

#include <algorithm>
#include <optional>

#include "cli/material.hpp"

namespace headwise::cli {

Prompt prompt_of(const Run& run, const Task* task, const std::string& text, Rng& rng) {
  const Tokenizer& tokenizer = run.tokenizer();
  const auto token_of = [&](std::string_view token) -> std::optional<Id> {
    if (tokenizer.kind() == TokenizerKind::byte) return static_cast<unsigned char>(token[0]);
    const auto& known = tokenizer.tokens();
    const auto found = std::find(known.begin(), known.end(), token);
    if (found == known.end()) return std::nullopt;
    return static_cast<Id>(found - known.begin());
  };
  Prompt prompt{.text = text, .tokens = {}, .go_on = nullptr};
  const std::optional<Id> tab = token_of("\t"), newline = token_of("\n");
  const bool question = task != nullptr && tab && newline;
  if (question) {
    prompt.go_on = [end = *newline](Id id) { return id != end; };
    if (text.empty()) prompt.text = task->valid(rng).text;
    prompt.text = prompt.text.substr(0, prompt.text.find('\t')) + '\t';
  }
  prompt.tokens = about("--prompt", [&] { return tokenizer.encode(prompt.text); });
  if (prompt.tokens.empty()) prompt.tokens = {newline.value_or(0)};
  return prompt;
}

}  // namespace headwise::cli
