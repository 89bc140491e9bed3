// Continues texts, a token at a time.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "headwise/models/decoder.hpp"
#include "headwise/models/draw.hpp"

namespace headwise {

/// Texts that grow side by side, at most kFewRows of them: each weight is read once a token for all
/// of them, and none depends on the others, to the bit. What was seen is kept (a key/value cache)
/// until a text is longer than the model's context; from then on the model sees the last `context`
/// tokens, all of them again for each token, as positions count from the window's start.
template <Real T>
class Generator {
 public:
  /// Reads the prompts, which must not be empty, and leaves room for so many tokens more. Throws
  /// UsageError for an empty prompt or none, ShapeError for more than kFewRows.
  Generator(const Decoder<T>& model, const std::vector<std::vector<Id>>& prompts, Index more);

  /// Logits (V) of the next token of text i. Valid until add(). Throws ShapeError without such a
  /// text.
  [[nodiscard]] std::span<const T> logits(Index i) const;
  /// Appends a token to each text.
  void add(const std::vector<Id>& next);
  [[nodiscard]] Index texts() const { return static_cast<Index>(texts_.size()); }

 private:
  /// Text i from the start of its window.
  void read(Index i);

  const Decoder<T>& model_;
  std::vector<std::vector<Id>> texts_;
  Cache<T> cache_, one_;  // of all texts, and to read one of them
  /// Where the logits of a text are: a row of a result that it may share with others.
  struct Row {
    Tensor<T> logits;  // (B,V)
    Index row = 0;
  };
  std::vector<Row> rows_;
};

/// What to do with text i's next token, as it is drawn: false ends that text.
using Each = std::function<bool(Index i, Id id)>;

/// `count` tokens that continue each of the prompts, or fewer where `each`, if given, says so. The
/// texts are drawn side by side, text i by rngs[i] alone: it is the same whatever else is drawn.
/// Throws UsageError as Generator and Drawing do.
template <Real T>
std::vector<std::vector<Id>> sample(const Decoder<T>& model,
                                    const std::vector<std::vector<Id>>& prompts, Index count,
                                    const Drawing& drawing, std::span<Rng> rngs,
                                    const Each& each = nullptr);
/// The same for one text.
template <Real T>
std::vector<Id> sample(const Decoder<T>& model, const std::vector<Id>& prompt, Index count,
                       const Drawing& drawing, Rng& rng,
                       const std::function<bool(Id)>& each = nullptr);

extern template class Generator<float>;
extern template class Generator<double>;

}  // namespace headwise
