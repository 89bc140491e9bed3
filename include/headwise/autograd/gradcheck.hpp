// Compares gradients with finite differences, and says where and how they are wrong.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "headwise/autograd/diagnosis.hpp"
#include "headwise/autograd/tape.hpp"
#include "headwise/core/parse.hpp"

namespace headwise {

enum class Verdict { pass, fail, inconclusive };
constexpr std::array<std::string_view, 3> names_of(Verdict) {
  return {"pass", "fail", "inconclusive"};
}

/// The largest error that passes, for every op and every input, in double and in float.
inline constexpr double kGradTolerance = 1e-7, kGradToleranceFloat = 5e-3;

/// How to check. In brackets what torch.autograd.gradcheck has.
struct GradOptions {
  /// Largest step, times an input's largest value where that is below 1. 0: 1e-3, in float 5e-3
  /// [1e-6, as it is]. Differences are extrapolated over it, its half and its quarter.
  double eps = 0;
  /// The error that passes, of the largest gradient of the tensor. 0: kGradTolerance [1e-3, of each
  /// element].
  double rtol = 0;
  /// A difference that passes whatever the gradient [1e-5].
  double atol = 0;
  /// By how much two backward passes may differ; 0: not by a bit [the same].
  double nondet_tol = 0;
  /// Compares one random direction of each input instead of its elements [the same], see
  /// chance_of_miss().
  bool fast = false;
  Index sample = 0;  ///< elements of each tensor that are compared; 0: all
  /// To spend: half of them on elements, of which each tensor has some, the rest on what does not
  /// pass (larger steps, the diagnosis). 0: no limit.
  double seconds = 0;
  std::uint64_t seed = 1;  ///< of what is drawn: elements, directions
  /// Ends of the names of parameters whose gradient is zero in theory, "w_k.bias": below the
  /// rounding floor on both sides they pass, where another tensor would be inconclusive.
  std::vector<std::string> zero_in_theory{};
  Index heads = 0;       ///< to call columns of a tensor a head's; 0: unknown
  bool diagnose = true;  ///< false: a failure is told, not explained
};

/// One input or parameter, compared.
struct TensorCheck {
  std::string name;  ///< "input 0" or the parameter's
  Shape shape;
  Verdict verdict = Verdict::inconclusive;
  Index elements = 0;  ///< looked at
  Index skipped = 0;   ///< of these, not compared: near a kink, left and right slope differ
  double worst = 0;    ///< max |a-n| / max(max |a|, max |n|, floor)
  double floor = 0;    ///< the gradient that rounding alone may hide
  double step = 0;     ///< the largest, with which that was found
  Index at = 0;        ///< the element of the worst error
  double analytic = 0, numeric = 0;  ///< there
  std::string note;                  ///< why it did not pass, "near a kink", ...; or empty
  /// Both gradients of the tensor, double whatever was checked, NaN where nothing was compared.
  Tensor<double> a, n;
};

/// What a gradient check found; of several tensors, the worst.
struct GradReport {
  Verdict verdict = Verdict::inconclusive;
  double worst = 0;                  ///< see TensorCheck
  std::string where;                 ///< "input 0, element 7"
  double analytic = 0, numeric = 0;  ///< the two values there
  Index elements = 0, skipped = 0;   ///< of all tensors
  std::string dtype;                 ///< "f64" or "f32"
  double step = 0, tolerance = 0;    ///< GradOptions::eps and rtol, as they were
  std::vector<TensorCheck> tensors;
  /// What is wrong beside the values, each a sentence: "not deterministic: ...".
  std::vector<std::string> problems;
  /// What one should know of a check that did not fail: what was skipped or not looked at, how
  /// likely a miss is.
  std::vector<std::string> notes;
  Diagnosis diagnosis;  ///< of a failure
};

/// The report as text of several lines: the table of its tensors and, of a failure, the diagnosis.
std::string describe(const GradReport& report);

/// The weights, fixed and normal (1 for a single number), on which a result of that shape is
/// projected before it is differentiated. Analytic gradients are those of sum(w * y).
Tensor<double> projection(const Shape& shape);

/// How likely fast mode misses a gradient whose error has the norm `error` (relative to the
/// gradient's): a wrong part E is seen as |<w, E u>| with w and u normal, and where E has rank one,
/// the worst case, that is |E| times two independent normal numbers, whose product has the
/// density K0(|z|) / pi (Craig 1936, Ann. Math. Stat. 7, sec. 2).
double chance_of_miss(double error, double tolerance);

/// A forward pass to check. It must do the same at each call, take all it depends on from the tape
/// (leaf() and use()), and may be called from several threads at once.
template <Real T>
struct Subject {
  std::function<Var<T>(Tape<T>&)> forward;
  /// By name; those that are not trainable are constants.
  std::vector<std::pair<std::string, const Param<T>*>> params;
};

/// Checks the gradients of every leaf ("input 0", ...) and every parameter of a forward pass.
///
/// Values: for each tensor worst = max |a-n| / max(max |a|, max |n|, floor), where n are central
/// differences of sum(projection * y) extrapolated over the steps h, h/2, h/4 (Richardson 1911,
/// Phil. Trans. A 210), outputs subtracted before they are projected, and floor is what rounding
/// alone allows, u sum |w y| / h / tolerance. At most kGradTolerance passes; a floor above
/// the largest gradient is inconclusive, and so are more than 10 % of elements near a kink, and
/// differences that rounding or the extrapolation's own error explain. A tensor that does not pass
/// is tried again with larger steps, up to eps or eps of its largest value, whichever is more, in
/// float 40 times that: what agrees there passes. Where a step is too large (over a kink,
/// or the result is not finite there, or the forward pass throws) smaller ones are tried before; an
/// element that no step suits is inconclusive.
///
/// Beside values, each a failure: a NaN or an infinity in an input, a NaN in the result, either in
/// a gradient; a forward pass that is not the same twice; a backward that is not (to the bit),
/// throws, does not give zero for zero, or writes over gradients that were there; a result whose
/// shape changes; an input that does not come back as it was; a parameter that matters and gets no
/// gradient. A result that overflows is inconclusive. What the forward pass itself throws at the
/// values that it is given comes through.
///
/// Elements are moved in parallel; the report does not depend on the number of threads (with
/// `seconds`, the number of elements does).
template <Real T>
GradReport gradcheck(const Subject<T>& subject, const GradOptions& options = {});

/// A function of some inputs, to be checked.
template <Real T>
using Function = std::function<Var<T>(const std::vector<Var<T>>&)>;

/// Checks the gradient of f with respect to each input.
template <Real T = double>
GradReport gradcheck(const std::type_identity_t<Function<T>>& f, std::vector<Tensor<T>> inputs,
                     const GradOptions& options = {});

/// One of a table of checks: an op's, a layer's, a model's.
struct GradCase {
  std::string name, label;  ///< "gelu", "matrix"
  std::function<GradReport(const GradOptions&)> check;
};

}  // namespace headwise
