#include "headwise/ops/key_values.hpp"

#include <algorithm>

namespace headwise {
namespace {

/// Row i of sequence b in a tensor (B,S,C).
template <class T>
T* row_of(T* x, const Shape& shape, Index b, Index i) {
  return x + (b * shape[1] + i) * shape[2];
}

/// Writes the T rows of each sequence of `part` behind those that are there.
template <Real T>
void append(Tensor<T>& whole, const std::vector<Index>& lengths, const Tensor<T>& part) {
  T* out = whole.data();
  const Shape to = whole.shape(), from = part.shape();
  for (Index b = 0; b < from[0]; ++b)
    std::copy_n(row_of(part.data(), from, b, 0), from[1] * from[2],
                row_of(out, to, b, lengths[static_cast<std::size_t>(b)]));
}

template <Real T>
void copy_rows(Tensor<T>& to, Index b, const Tensor<T>& one, Index rows) {
  std::copy_n(one.data(), rows * one.shape()[2], row_of(to.data(), to.shape(), b, 0));
}

}  // namespace

template <Real T>
KeyValues<T>::KeyValues(Index sequences, Index capacity)
    : capacity_(capacity), lengths_(static_cast<std::size_t>(sequences)) {
  require(sequences > 0 && capacity > 0, "key_values: {} sequences of {} tokens", sequences,
          capacity);
}

template <Real T>
Visible<T> KeyValues<T>::extend(const Var<T>& k, const Var<T>& v) {
  const Shape &sk = k.shape(), &sv = v.shape();
  const auto sequences = static_cast<Index>(lengths_.size());
  require<Error>(
      !k.tracked() && !v.tracked(),
      "key_values: keys and values that are kept send no gradient; decode without a tape");
  require(sk.rank() == 3 && sv.rank() == 3 && sk[0] == sequences && sv[0] == sequences &&
              sk[1] == sv[1],
          "key_values: k {} and v {} are not (B,T,C) of {} sequences", sk, sv, sequences);
  const auto [shortest, longest] = std::minmax_element(lengths_.begin(), lengths_.end());
  require(sk[1] == 1 || *shortest == *longest,
          "key_values: {} tokens cannot follow sequences of {} to {} tokens at once", sk[1],
          *shortest, *longest);
  require(*longest + sk[1] <= capacity_,
          "key_values: {} and {} more tokens do not fit the room of {}", *longest, sk[1],
          capacity_);
  if (k_.empty()) {  // what nobody has written yet is never read: the mask hides it
    k_ = Tensor<T>::uninitialized({sequences, capacity_, sk[2]});
    v_ = Tensor<T>::uninitialized({sequences, capacity_, sv[2]});
  }
  require(k_.shape()[2] == sk[2] && v_.shape()[2] == sv[2],
          "key_values: k {} and v {} do not continue {} and {}", sk, sv, k_.shape(), v_.shape());
  append(k_, lengths_, k.value());
  append(v_, lengths_, v.value());
  const Index before = *shortest;
  for (Index& length : lengths_) length += sk[1];
  Mask mask = keys_below(lengths_);
  if (sk[1] > 1) mask = mask & causal(before);
  return {k_, v_, mask};
}

template <Real T>
void KeyValues<T>::clear(Index b) {
  require(b >= 0 && b < std::ssize(lengths_), "key_values: no sequence {} among {}", b,
          lengths_.size());
  lengths_[static_cast<std::size_t>(b)] = 0;
}

template <Real T>
void KeyValues<T>::copy(Index b, const KeyValues& one) {
  require(one.lengths_.size() == 1 && one.lengths_[0] <= capacity_ && b >= 0 &&
              b < static_cast<Index>(lengths_.size()),
          "key_values: {} sequences of {} tokens do not fit place {} of {} with room for {}",
          one.lengths_.size(), one.lengths_[0], b, lengths_.size(), capacity_);
  const auto room = [&](Tensor<T>& mine, const Tensor<T>& theirs) {
    if (mine.empty())
      mine = Tensor<T>::uninitialized(
          {static_cast<Index>(lengths_.size()), capacity_, theirs.shape()[2]});
  };
  const Index rows = one.lengths_[0];
  if (rows > 0) {
    room(k_, one.k_);
    room(v_, one.v_);
    require(k_.shape()[2] == one.k_.shape()[2] && v_.shape()[2] == one.v_.shape()[2],
            "key_values: keys {} and values {} cannot be copied into {} and {}", one.k_.shape(),
            one.v_.shape(), k_.shape(), v_.shape());
    copy_rows(k_, b, one.k_, rows);
    copy_rows(v_, b, one.v_, rows);
  }
  lengths_[static_cast<std::size_t>(b)] = rows;
}

template class KeyValues<float>;
template class KeyValues<double>;

}  // namespace headwise
