// What heads are looked at on.
#pragma once

#include <string>
#include <vector>

#include "headwise/core/function_ref.hpp"
#include "headwise/data/source.hpp"
#include "headwise/models/decoder.hpp"

namespace headwise::study {

/// Tokens that go through the model at once, about.
inline constexpr Index kTokensAtOnce = 2048;

/// One sequence as a batch, (1,T).
inline Ids as_batch(const std::vector<Id>& ids) { return {{1, std::ssize(ids)}, ids}; }

/// Sequences side by side, as a batch has them. What stands behind a sequence's length is padding.
struct Sequences {
  Batch batch;                 ///< inputs, targets (B,T)
  std::vector<Index> lengths;  ///< tokens that count, 1 to T each

  [[nodiscard]] Index count() const { return batch.inputs.shape[0]; }
  [[nodiscard]] Index time() const { return batch.inputs.shape[1]; }
  /// Those of a sequence that count. Throws ShapeError, as range() does, for a sequence that is not
  /// there, and for lengths and ids that do not fit.
  [[nodiscard]] std::span<const Id> ids(Index sequence) const;
  /// The sequences [begin, end).
  [[nodiscard]] Sequences range(Index begin, Index end) const;
};

/// The sequences without repetitions, in order: of those that have equal tokens, the first. Equal
/// sequences are one observation; two would count twice in every p-value and standard error.
Sequences distinct(const Sequences& sequences);

/// Sequences of a source's validation part, up to `count`, all distinct: windows of a text that do
/// not overlap, evenly spread, or the whole text where it is shorter than a window; of a task all
/// there are, or those that the seed draws. One ends with its last target that counts. Throws
/// DataError for a text of fewer than two tokens.
Sequences data_sequences(const Source& source, Index count, std::uint64_t seed);

/// One given sequence, each token but the last with the next one as its target. Throws DataError
/// for fewer than two tokens.
Sequences one_sequence(std::vector<Id> ids);

/// Repeated random tokens (Olsson et al. 2022, arXiv:2209.11895, appendix on head evaluators):
/// [first] r r r ... of `time` tokens. r is a random choice, each token once, out of those that are
/// seen in `like`, the commonest and the rarest 4 % aside; its length is drawn anew for each
/// sequence, from 8 up, or from half of the longest that has room twice, so that no fixed offset
/// finds the copy: a fixed length is solved by position alone. `first` is what sequences begin
/// with; absent: nothing. The targets that count are those from the second r on: what came before
/// says what follows. All are distinct: from few tokens fewer than `count` can be drawn. Nothing
/// when there are fewer than 2 tokens to draw from, or no room for 5.
std::optional<Sequences> repeated_sequences(const Sequences& like, Index count, Index time,
                                            std::optional<Id> first, std::uint64_t seed);

/// What a layer's attention did with a block of sequences.
template <Real T>
struct SeenLayer {
  Index layer = 0, first = 0;  ///< which layer; the number of the block's first sequence
  Tensor<T> pattern;           ///< (B,H,T,T)
  Tensor<T> z;                 ///< (B,T,C), before W_O
};

/// Calls see layer by layer, for one block of sequences after the other: never more than some
/// kTokensAtOnce tokens at once. Holds the residual stream of all sequences. The bits are those of
/// a whole forward pass over each block.
template <Real T>
void for_each_pattern(const Decoder<T>& model, const Sequences& sequences,
                      FunctionRef<void(const SeenLayer<T>&)> see);

}  // namespace headwise::study
