#include "headwise/data/source.hpp"

#include "headwise/core/parse.hpp"

namespace headwise {

TaskSource::TaskSource(std::unique_ptr<const Task> task, const std::optional<Tokenizer>& known)
    : task_(std::move(task)),
      tokenizer_(known ? *known
                       : Tokenizer::from_tokens(TokenizerKind::character, task_->alphabet())) {
  require<UsageError>(tokenizer_.kind() == TokenizerKind::character,
                      "--task: {} needs characters as tokens, --init-from's are of the kind {}",
                      task_->name(), name_of(tokenizer_.kind()));
  for (const std::string& character : task_->alphabet()) (void)tokenizer_.encode(character);
}

Batch TaskSource::draw(bool valid, Index batch, Rng& rng) const {
  return task_batch(
      *task_, [&](std::string_view text) { return tokenizer_.encode(text); }, valid, batch, rng);
}

}  // namespace headwise
