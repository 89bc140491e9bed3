// The kind of a mistake, from what it did to the numbers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "headwise/autograd/diagnosis.hpp"

namespace headwise {

/// The gradient of sum(w y) with respect to one input x of one function.
struct LocalGradient {
  Shape in, out;                          ///< of x and y
  std::vector<double> analytic, numeric;  ///< by element of x
  std::vector<double> w;                  ///< by element of y
  std::vector<double> jacobian;  ///< dy/dx, numeric: [element of x][element of y]; may be empty
};

struct Kind {
  Fault fault = Fault::other;
  std::string reason;
  double ratio = 0;  ///< see Diagnosis
};

/// Each kind predicts the wrong gradient from the right one: times a constant; with axes exchanged;
/// with some of the contributions w dy/dx left out. With w drawn at random, a prediction that fits
/// every element is no accident.
Kind kind_of(const LocalGradient& g);

}  // namespace headwise
