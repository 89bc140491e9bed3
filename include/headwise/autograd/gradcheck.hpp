// Compares gradients with finite differences, in double.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "headwise/autograd/tape.hpp"

namespace headwise {

enum class Verdict { pass, fail, inconclusive };
std::string to_string(Verdict verdict);

/// The largest error that passes, for every op and every input.
inline constexpr double kGradTolerance = 1e-7;

/// What a gradient check found; of several inputs, the worst.
struct GradReport {
  Verdict verdict = Verdict::inconclusive;
  double worst = 0;                  ///< max |a-n| / max(max |a|, max |n|, floor) of one input
  std::string where;                 ///< "input 0, element 7"
  double analytic = 0, numeric = 0;  ///< the two values there
  Index elements = 0;                ///< compared, over all inputs
};

/// A tensor to perturb, and the gradient to prove.
struct GradSubject {
  std::string name;       ///< as it appears in GradReport::where
  Tensor<double>* value;  ///< perturbed and put back
  Tensor<double> analytic;
};

/// The weights, fixed and normal, on which a result of that shape is projected before it is
/// differentiated. Analytic gradients are those of sum(w * y).
Tensor<double> projection(const Shape& shape);

/// Compares the analytic gradients of sum(projection * evaluate()) with numeric ones: central
/// differences extrapolated over the steps h, h/2, h/4 (Richardson 1911), h = 1e-3 of the input's
/// largest value and at most 1e-3; outputs are subtracted before they are projected. The rounding
/// floor is 2.2e-16 sum |w y| / h / 1e-7; one above the largest gradient is inconclusive.
GradReport compare_gradients(const std::function<Tensor<double>()>& evaluate,
                             std::vector<GradSubject> subjects);

/// A function of some inputs, to be checked.
template <Real T>
using Function = std::function<Var<T>(const std::vector<Var<T>>&)>;

/// Checks the gradient of f with respect to each input. f must be deterministic.
GradReport gradcheck(const Function<double>& f, std::vector<Tensor<double>> inputs);

}  // namespace headwise
