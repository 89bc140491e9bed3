// Where the batches of a training run come from.
#pragma once

#include <memory>
#include <optional>

#include "headwise/data/task.hpp"
#include "headwise/data/text.hpp"
#include "headwise/data/tokenizer.hpp"

namespace headwise {

/// Something to learn from, in two parts: one to train on, one to validate on.
struct Source {
  virtual ~Source() = default;
  /// `batch` sequences, drawn by rng.
  [[nodiscard]] virtual Batch train(Index batch, Rng& rng) const = 0;
  [[nodiscard]] virtual Batch valid(Index batch, Rng& rng) const = 0;
  /// Whether the parts share nothing. Too little to part is all of it in both.
  [[nodiscard]] virtual bool held_out() const { return true; }
  /// What an evaluation is done on, for messages: "validation part", or where it is not held out
  /// "training text" or "training examples".
  [[nodiscard]] virtual std::string_view evaluated_on() const { return "validation part"; }
  /// Different sequences to validate on; 0: drawn without end, or windows of a text.
  [[nodiscard]] virtual Index valid_size() const { return 0; }
  /// Those from `first` on, `count` of them. Throws ShapeError where there are none.
  [[nodiscard]] virtual Batch valid_range(Index first, Index count) const;
  /// What makes an answer right; nothing where there are no answers, as in plain text.
  [[nodiscard]] virtual std::optional<Accuracy> accuracy() const { return std::nullopt; }
};

/// Windows of a text at random places.
class TextSource : public Source {
 public:
  /// Throws DataError as split() does.
  TextSource(const PackedIds& tokens, Index context)
      : TextSource(split(tokens, context), context) {}
  TextSource(Split parts, Index context) : parts_(std::move(parts)), context_(context) {}

  [[nodiscard]] Batch train(Index batch, Rng& rng) const override {
    return random_batch(parts_.train, batch, context_, rng);
  }
  [[nodiscard]] Batch valid(Index batch, Rng& rng) const override {
    return random_batch(parts_.valid, batch, context_, rng);
  }
  [[nodiscard]] bool held_out() const override { return !parts_.shared; }
  [[nodiscard]] std::string_view evaluated_on() const override {
    return parts_.shared ? "training text" : "validation part";
  }
  [[nodiscard]] const Split& parts() const { return parts_; }
  [[nodiscard]] Index context() const { return context_; }

 private:
  Split parts_;
  Index context_;
};

/// Sequences of a task, its characters being the tokens.
class TaskSource : public Source {
 public:
  /// With a tokenizer that an earlier run had, unless there is none. Throws UsageError when
  /// its tokens are not characters, DataError when it does not know all of the task's.
  explicit TaskSource(std::unique_ptr<const Task> task,
                      const std::optional<Tokenizer>& known = std::nullopt);

  [[nodiscard]] Batch train(Index batch, Rng& rng) const override {
    return draw(false, batch, rng);
  }
  [[nodiscard]] Batch valid(Index batch, Rng& rng) const override { return draw(true, batch, rng); }
  [[nodiscard]] bool held_out() const override { return !task_->shared(); }
  [[nodiscard]] std::string_view evaluated_on() const override {
    return task_->shared() ? "training examples" : "validation part";
  }
  [[nodiscard]] Index valid_size() const override { return task_->valid_size(); }
  [[nodiscard]] Batch valid_range(Index first, Index count) const override;
  [[nodiscard]] std::optional<Accuracy> accuracy() const override { return task_->accuracy(); }
  [[nodiscard]] const Task& task() const { return *task_; }
  [[nodiscard]] const Tokenizer& tokenizer() const { return tokenizer_; }

 private:
  [[nodiscard]] Batch draw(bool valid, Index batch, Rng& rng) const;

  std::unique_ptr<const Task> task_;
  Tokenizer tokenizer_;
};

}  // namespace headwise
