// A forward pass run again with one of its values changed, as a whole or record by record.
#pragma once

#include <vector>

#include "headwise/autograd/gradcheck.hpp"
#include "headwise/core/function_ref.hpp"

namespace headwise {

/// What a forward pass left on its tape.
template <Real T>
struct Seen {
  std::vector<typename Tape<T>::Entry> entries;
  std::vector<Tensor<T>> values;  // by place
  Tensor<T> y;
  Index place = -1;  // of y; -1: a constant

  [[nodiscard]] bool is_input(Index at) const {
    const auto& name = entries[static_cast<std::size_t>(at)].name;
    return name == "leaf" || name == "param";
  }
  [[nodiscard]] const Tensor<T>& value(Index at) const {
    return values[static_cast<std::size_t>(at)];
  }
};

template <Real T>
Seen<T> see(const Subject<T>& subject);

/// The result with x in the place of a value.
template <Real T>
Tensor<T> with(const Subject<T>& subject, Index place, const Tensor<T>& x);

/// For each place what stands there instead of the value seen; an empty tensor: nothing else.
template <Real T>
using Instead = std::vector<Tensor<T>>;

/// What each record, alone, makes of inputs that are as they were seen, or what is instead of them:
/// no change goes further than one record. Of leaves and parameters, empty tensors.
/// With `last`, nothing behind that record is run.
template <Real T>
std::vector<Tensor<T>> each_alone(const Subject<T>& subject, const Seen<T>& seen,
                                  const Instead<T>& instead, Index last = -1);

/// The same of one record, with x at one place.
template <Real T>
Tensor<T> alone(const Subject<T>& subject, const Seen<T>& seen, Index record, Index place,
                const Tensor<T>& x);

}  // namespace headwise
