// One tensor under comparison, and what comes of it.
#pragma once

#include <vector>

#include "autograd/judge.hpp"
#include "headwise/autograd/gradcheck.hpp"

namespace headwise {

struct Compared {
  TensorCheck check;
  Index place = -1;           ///< on the tape
  Tensor<double> gradient;    ///< analytic, zeros where none arrived
  bool reached = false;       ///< one arrived
  bool directed = false;      ///< one random direction stands for all elements
  double known = 0;           ///< the largest analytic gradient, of a direction its norm
  std::vector<Index> order;   ///< in which elements are taken; empty for a direction
  std::vector<Slope> slopes;  ///< as many of them as were taken, see taken()
  Index too_far = 0;  ///< of these, for which the step is too large, see asks_for_smaller_steps()

  [[nodiscard]] std::size_t taken() const {
    return directed ? 1 : static_cast<std::size_t>(check.elements);
  }
  /// Of the elements taken, or of the direction.
  [[nodiscard]] std::vector<double> analytic() const;
};

/// What a check holds a tensor to.
struct Terms {
  double tolerance = 0, atol = 0;
  double inside = 0;            ///< see Judge
  bool zero_in_theory = false;  ///< see GradOptions
  Shape result;
};

/// Writes verdict, worst element, note and both gradients into t.check. `agrees(i, within)` as of
/// Judge, for the i-th of the elements taken.
void conclude(Compared& t, const Terms& terms, FunctionRef<bool(std::size_t i, double)> agrees);

}  // namespace headwise
