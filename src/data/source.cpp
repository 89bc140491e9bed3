#include "headwise/data/source.hpp"

#include "headwise/core/parse.hpp"
#include "headwise/core/printable.hpp"

namespace headwise {

Batch Source::valid_range(Index first, Index count) const {
  throw ShapeError(fmt::format("source: no sequences {} to {}, the validation part has {}", first,
                               first + count, valid_size()));
}

TaskSource::TaskSource(std::unique_ptr<const Task> task, const std::optional<Tokenizer>& known)
    : task_(std::move(task)),
      tokenizer_(known ? *known
                       : Tokenizer::from_tokens(TokenizerKind::character, task_->alphabet())) {
  require<ParameterError>(
      tokenizer_.kind() == TokenizerKind::character,
      "task: {} needs characters as tokens, the known tokenizer's are of the kind {}",
      printable(task_->name()), name_of(tokenizer_.kind()));
  for (const std::string& character : task_->alphabet()) (void)tokenizer_.encode(character);
}

Batch TaskSource::valid_range(Index first, Index count) const {
  std::vector<Example> examples;
  for (Index i = first; i < first + count; ++i) examples.push_back(task_->valid_example(i));
  return task_batch(
      *task_, [&](std::string_view text) { return tokenizer_.encode(text); }, examples);
}

Batch TaskSource::draw(bool valid, Index batch, Rng& rng) const {
  return task_batch(
      *task_, [&](std::string_view text) { return tokenizer_.encode(text); }, valid, batch, rng);
}

}  // namespace headwise
