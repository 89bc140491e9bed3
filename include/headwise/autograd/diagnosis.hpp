// What a wrong gradient looks like, and which record of the tape it comes from.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "headwise/core/shape.hpp"

namespace headwise {

/// The kinds of mistake that show in the numbers.
enum class Fault {
  none,           ///< nothing is wrong
  factor,         ///< the right gradient times a constant
  sign,           ///< the right gradient times -1
  transposition,  ///< of the gradient, or of something it is made from
  reduction,      ///< a broadcast input got a part of what should be summed over the broadcast axes
  accumulation,   ///< a contribution replaced another instead of being added to it
  row,            ///< one row is wrong, or rows are shifted by one
  other
};
constexpr std::array<std::string_view, 8> names_of(Fault) {
  return {"none",         "factor",  "sign", "transposition", "missing reduction",
          "accumulation", "one row", "other"};
}

/// How the difference between analytic and numeric gradient changes with the step.
enum class Trend {
  wrong,    ///< flat: the gradient is wrong
  kink,     ///< the slopes to the left and to the right differ
  rounding  ///< grows as 1/step
};
constexpr std::array<std::string_view, 3> names_of(Trend) { return {"wrong", "kink", "rounding"}; }

/// The worst element again, with another step.
struct SweepStep {
  double step, numeric, left, right,
      difference;  ///< |analytic - numeric|; all without extrapolation
};

/// A record of the tape whose own backward is wrong, checked alone at the values it really saw.
struct WrongRecord {
  Index number = -1;  ///< its place on the tape; -1: none is wrong
  Index of = 0;       ///< records on the tape
  std::string op;
  Shape shape;                       ///< of its result
  std::vector<std::string> inputs;   ///< "input 0", "blocks.0.ln1.weight", "record 4 (add)"
  Index input = -1;                  ///< the one whose gradient is wrong
  Index element = 0;                 ///< of it
  double analytic = 0, numeric = 0;  ///< there, of the record's own projected result
};

struct Diagnosis {
  Fault fault = Fault::none;
  std::string reason;  ///< a sentence: "analytic / numeric is 2 throughout: ..."
  double ratio = 0;    ///< analytic / numeric where it is nearly constant, else 0
  Trend trend = Trend::wrong;
  std::vector<SweepStep> sweep;
  /// "input 0: rows 3 to 4 of 5", a sentence a tensor; of the record where one is wrong.
  std::vector<std::string> inputs_affected;
  std::string outputs_affected;  ///< which results send a wrong gradient; empty: not looked into
  WrongRecord record;
};

}  // namespace headwise
