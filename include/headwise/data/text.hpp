// Text: read, cut into tokens, split, and drawn from.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "headwise/core/ids.hpp"
#include "headwise/core/random.hpp"

namespace headwise {

/// The bytes of a text file, or of standard input for "-". Throws DataError, naming the path, when
/// it cannot be read or is empty.
std::string read_text(const std::string& path);

/// The built-in corpus, datasets/stories.txt.
std::string_view builtin_text();

/// The characters (code points) of a text, numbered by code point.
class CharTokenizer {
 public:
  /// Learns the characters of a text. Throws DataError when it is empty or not UTF-8, with the
  /// byte's offset and value.
  static CharTokenizer from_text(std::string_view text);
  /// The tokens of tokenizer.json, each one character. Throws DataError when they are not.
  static CharTokenizer from_tokens(const std::vector<std::string>& tokens);

  /// Throws DataError naming the character and its index when it was not in the training text.
  [[nodiscard]] std::vector<Id> encode(std::string_view text) const;
  /// The exact text: decode(encode(x)) == x.
  [[nodiscard]] std::string decode(const std::vector<Id>& ids) const;

  [[nodiscard]] Index vocab() const { return static_cast<Index>(tokens_.size()); }
  [[nodiscard]] const std::vector<std::string>& tokens() const { return tokens_; }

 private:
  std::vector<std::string> tokens_;  // UTF-8
  std::unordered_map<char32_t, Id> ids_;
};

/// Tokens to train on and tokens to validate on.
struct Split {
  std::vector<Id> train, valid;
  bool shared = false;  ///< too short to part: both are the whole text
};

/// The first 90 % and the rest; the whole twice when the rest is shorter than context + 1 tokens.
/// Throws DataError when even the whole is.
Split split(const std::vector<Id>& tokens, Index context);

/// Windows of a text and what follows each of their tokens.   inputs, targets (B,T).
struct Batch {
  Ids inputs, targets;
};

/// `batch` windows of `context` tokens at random places. Throws DataError when there are fewer than
/// context + 1 tokens.
Batch random_batch(const std::vector<Id>& tokens, Index batch, Index context, Rng& rng);

}  // namespace headwise
