// The kind of a mistake, from what it did to the numbers.
#pragma once

#include <string>

#include "autograd/predict.hpp"
#include "headwise/autograd/diagnosis.hpp"

namespace headwise {

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
