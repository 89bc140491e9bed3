// What can be wrong with a gradient beside its values.
#pragma once

#include <string>
#include <vector>

#include "autograd/replay.hpp"

namespace headwise {

/// "input 0", the parameter's name, or "record 4 (add)".
template <Real T>
std::string name_at(const Subject<T>& subject, const Seen<T>& seen, Index place);

/// The gradients of sum(w y), by place: of leaves and parameters, empty where nothing arrived.
template <Real T>
std::vector<Tensor<T>> gradients(const Subject<T>& subject, const Tensor<double>& w);

/// The gradients of sum(w y) of one record alone with respect to each of its inputs; `before` as in
/// Tape::pull().
template <Real T>
std::vector<Tensor<T>> gradients_of(const Subject<T>& subject, Index record,
                                    const Tensor<double>& w, std::vector<Tensor<T>> before = {});

/// The gradient at `place` among those of a record's inputs; empty when it is not one of them.
template <Real T>
Tensor<T> among(const std::vector<Tensor<T>>& gradients, const std::vector<Index>& inputs,
                Index place);

/// Where a record stands on the tape, for a report.
template <Real T>
WrongRecord record_at(const Subject<T>& subject, const Seen<T>& seen, Index record);

/// What was found, and the gradients if there are any to compare.
template <Real T>
struct Audit {
  std::vector<std::string> problems, notes;
  bool comparable = true;  ///< false: comparing values would say nothing more
  std::vector<Tensor<T>> gradients;
  Diagnosis diagnosis;  ///< where a problem has a record
};

template <Real T>
Audit<T> audit(const Subject<T>& subject, const Seen<T>& seen, const GradOptions& options);

}  // namespace headwise
