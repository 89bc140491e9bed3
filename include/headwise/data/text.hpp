// Text: read; and its tokens: split, and drawn from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headwise/core/file.hpp"
#include "headwise/core/ids.hpp"
#include "headwise/core/random.hpp"
#include "headwise/data/packed_ids.hpp"

namespace headwise {

/// The bytes of a text file, or of standard input for "-". Throws DataError, naming the path, when
/// it cannot be read, is empty, or does not fit into half of the free memory. `accept`: what a file
/// names, not the user, is a regular file.
std::string read_text(const std::string& path, bool* had_mark = nullptr,
                      Accept accept = Accept::any);

/// The built-in corpus, datasets/stories.txt: made at the first call (data/stories.hpp).
std::string_view builtin_text();

/// Tokens to train on and tokens to validate on.
struct Split {
  PackedIds train, valid;
  bool shared = false;  ///< too short to part: both are the whole text
};

/// The first 90 % and the rest; the whole twice when the rest is shorter than context + 1 tokens.
/// Throws DataError when even the whole is. The parts share the storage of the whole.
Split split(const PackedIds& tokens, Index context);

/// Sequences and what follows each of their tokens; kIgnore where nothing is to be predicted.
/// inputs, targets (B,T).
struct Batch {
  Ids inputs, targets;
};

/// `batch` windows of `context` tokens at random places. Throws DataError when there are fewer than
/// context + 1 tokens.
Batch random_batch(const PackedIds& tokens, Index batch, Index context, Rng& rng);

}  // namespace headwise
