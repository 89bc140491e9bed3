// What a simple mistake would make of a right gradient.
#pragma once

#include <vector>

#include "headwise/core/shape.hpp"

namespace headwise {

/// Numbers by element.
using Values = std::vector<double>;
/// Some results, by whether they are in.
using Part = std::vector<bool>;

/// The gradient of sum(w y) with respect to one input x of one function.
struct LocalGradient {
  Shape in, out;             ///< of x and y
  Values analytic, numeric;  ///< by element of x
  Values w;                  ///< by element of y
  Values jacobian;           ///< dy/dx, numeric: [element of x][element of y]; may be empty

  /// dy/dx of an element of x, by element of y.
  [[nodiscard]] const double* row(std::size_t e) const { return jacobian.data() + e * w.size(); }

  /// The numeric gradient for other weights. This and what follows need a Jacobian.
  [[nodiscard]] Values of_weights(const Values& other) const;
  /// The same if only some results sent theirs.
  [[nodiscard]] Values of_part(const Part& part) const;
  /// The same if dy/dx had the index of y's axis p and that of x's axis q, of one size, exchanged.
  [[nodiscard]] Values exchanged(Index p, Index q) const;

  /// Whether x was repeated along an axis of y: broadcast as a whole, or batch by batch of
  /// matrices.
  [[nodiscard]] bool broadcast_along(Index axis) const;

 private:
  /// Whether an element of x that reaches one place along an axis of y reaches the others too.
  [[nodiscard]] bool reaches_all_along(Index axis) const;
};

/// Every order of the axes but the one that is; none for more than four.
std::vector<std::vector<Index>> orders(Index rank);

/// x with its axes in another order, flat: what a reader finds who takes it for one of the old
/// shape.
Values permuted(const Values& x, const Shape& shape, const std::vector<Index>& order);

/// x moved by one along an axis: around, or with zeros coming in.
Values shifted(const Values& x, const Shape& shape, Index axis, Index by, bool around);

}  // namespace headwise
