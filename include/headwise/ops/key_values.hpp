// The keys and values that an attention layer has seen, kept so that the next tokens of a text need
// not compute them again.
#pragma once

#include <vector>

#include "headwise/autograd/tape.hpp"
#include "headwise/ops/mask.hpp"

namespace headwise {

/// What queries look at: keys and values of every token so far, and which of them each may see.
template <Real T>
struct Visible {
  Var<T> k, v;  ///< (B,S,C)
  Mask mask;
};

/// Keys and values of B sequences, each of its own length, in room for S tokens each.
template <Real T>
class KeyValues {
 public:
  /// Room for `sequences` of up to `capacity` tokens.
  KeyValues(Index sequences, Index capacity);

  /// Adds the keys and values of the next T tokens of every sequence, and says what their queries
  /// look at.   k (B,T,C), v (B,T,C).
  /// Throws ShapeError when they do not fit the room, or when T > 1 tokens follow sequences of
  /// unequal lengths; Error when they are tracked: what is kept sends no gradient.
  Visible<T> extend(const Var<T>& k, const Var<T>& v);

  /// Sequence b becomes a copy of the one sequence of another.
  void copy(Index b, const KeyValues& one);
  /// Sequence b is forgotten. Throws ShapeError, as copy() does, without such a sequence.
  void clear(Index b);

  [[nodiscard]] Index capacity() const { return capacity_; }
  /// Tokens of each sequence so far.
  [[nodiscard]] const std::vector<Index>& lengths() const { return lengths_; }

 private:
  Index capacity_;
  std::vector<Index> lengths_;
  Tensor<T> k_, v_;  // (B,S,C), from the first extend() on
};

extern template class KeyValues<float>;
extern template class KeyValues<double>;

}  // namespace headwise
