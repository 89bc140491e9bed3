// Text: read; and its tokens: split, and drawn from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headwise/core/ids.hpp"
#include "headwise/core/random.hpp"

namespace headwise {

/// The bytes of a text file, or of standard input for "-". Throws DataError, naming the path, when
/// it cannot be read or is empty.
std::string read_text(const std::string& path, bool* had_mark = nullptr);

/// The built-in corpus, datasets/stories.txt: made at the first call (data/stories.hpp).
std::string_view builtin_text();

/// Tokens to train on and tokens to validate on.
struct Split {
  std::vector<Id> train, valid;
  bool shared = false;  ///< too short to part: both are the whole text
};

/// The first 90 % and the rest; the whole twice when the rest is shorter than context + 1 tokens.
/// Throws DataError when even the whole is.
Split split(const std::vector<Id>& tokens, Index context);

/// Sequences and what follows each of their tokens; kIgnore where nothing is to be predicted.
/// inputs, targets (B,T).
struct Batch {
  Ids inputs, targets;
};

/// `batch` windows of `context` tokens at random places. Throws DataError when there are fewer than
/// context + 1 tokens.
Batch random_batch(const std::vector<Id>& tokens, Index batch, Index context, Rng& rng);

}  // namespace headwise
