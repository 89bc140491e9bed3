#include "headwise/autograd/gradcheck.hpp"

#include <algorithm>
#include <cmath>

#include "autograd/audit.hpp"
#include "autograd/budget.hpp"
#include "autograd/compare.hpp"
#include "autograd/diagnose.hpp"
#include "autograd/slope.hpp"
#include "autograd/thrown.hpp"
#include "headwise/core/random.hpp"

namespace headwise {
namespace {

/// The report tells of the tensor that is worst off: a failure first, then what proved nothing.
void take_worst(GradReport& report, bool fast) {
  const auto rank = [](Verdict v) { return v == Verdict::fail ? 2 : v == Verdict::pass ? 0 : 1; };
  const TensorCheck* worst = nullptr;
  for (const TensorCheck& t : report.tensors) {
    report.elements += t.elements;
    report.skipped += t.skipped;
    const auto error = [](const TensorCheck& x) {  // what is zero in theory is all rounding
      return x.verdict == Verdict::pass && !x.note.empty() ? -1 : x.worst;
    };
    const bool worse = worst == nullptr || rank(t.verdict) > rank(worst->verdict) ||
                       (rank(t.verdict) == rank(worst->verdict) && !(error(t) <= error(*worst)));
    if (worse) worst = &t;
  }
  if (worst == nullptr) return;
  report.verdict = worst->verdict;
  report.worst = worst->worst;
  report.where = fast ? fmt::format("{}, a random direction", worst->name)
                      : fmt::format("{}, element {}", worst->name, worst->at);
  report.analytic = worst->analytic;
  report.numeric = worst->numeric;
}

bool fails(const std::vector<TensorCheck>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const TensorCheck& t) { return t.verdict == Verdict::fail; });
}

/// Throws UsageError, naming all values.
void require_sense(const GradOptions& o) {
  const auto sensible = [](double x) { return std::isfinite(x) && x >= 0; };
  require<UsageError>(sensible(o.eps) && sensible(o.rtol) && sensible(o.atol) &&
                          sensible(o.nondet_tol) && sensible(o.seconds) && o.sample >= 0 &&
                          o.heads >= 0,
                      "gradcheck: eps {}, rtol {}, atol {}, nondet_tol {}, seconds {}, sample {} "
                      "and heads {} must be finite and not negative",
                      o.eps, o.rtol, o.atol, o.nondet_tol, o.seconds, o.sample, o.heads);
}

/// Parameters that the forward pass does not touch.
template <Real T>
void add_unused(const Subject<T>& subject, const Seen<T>& seen, GradReport& report,
                std::vector<Index>& places) {
  for (const auto& [name, param] : subject.params) {
    const bool used = std::any_of(seen.entries.begin(), seen.entries.end(),
                                  [p = param](const auto& e) { return e.param == p; });
    if (used || !param->trainable) continue;
    TensorCheck unused;
    unused.name = name;
    unused.shape = param->value.shape();
    unused.note = "no gradient reaches it: the forward pass does not use it";
    places.push_back(-1);
    report.tensors.push_back(std::move(unused));
  }
}

void note_what_to_know(GradReport& report, const GradOptions& options, bool compared) {
  Index all = 0;
  for (const TensorCheck& t : report.tensors) {
    if (!t.note.empty()) report.notes.push_back(fmt::format("{}: {}", t.name, t.note));
    if (t.elements > 0) all += t.shape.size();
  }
  if (compared && report.tensors.empty())
    report.notes.push_back(
        "there is nothing to check: the forward pass takes no input and no trainable parameter "
        "from the tape");
  if (report.elements < all)
    report.notes.push_back(fmt::format("{} of {} elements were looked at", report.elements, all));
  if (report.skipped > 0)
    report.notes.push_back(fmt::format(
        "{} of {} elements not compared: near a kink, where the slopes on the two sides differ",
        report.skipped, report.elements));
  if (options.fast)
    report.notes.push_back(fmt::format(
        "one random direction of each tensor: an error of 1 % of its gradient goes unseen with "
        "probability {:.1e}, one of 0.01 % with {:.1e}",
        chance_of_miss(1e-2, report.tolerance), chance_of_miss(1e-4, report.tolerance)));
  if (report.dtype == "f32")
    report.notes.push_back(fmt::format(
        "in float: step {:.0e}, tolerance {:.0e}; double sees ten thousand times smaller mistakes",
        report.step, report.tolerance));
}

/// A direction says that something is wrong, elements say what.
template <Real T>
GradReport told_by_elements(const Subject<T>& subject, GradOptions options, const Budget& budget,
                            GradReport report) {
  options.fast = false;
  if (options.sample == 0) options.sample = 256;
  if (budget.limited()) options.seconds = std::max(1e-3, budget.left());  // 0 would be no limit
  GradReport found = gradcheck(subject, options);
  if (found.verdict == Verdict::fail) return found;
  report.diagnosis.fault = Fault::other;
  report.diagnosis.reason =
      fmt::format("wrong along a random direction, but at none of {} elements", found.elements);
  return report;
}

}  // namespace

Tensor<double> projection(const Shape& shape) {
  if (shape.size() == 1) return Tensor<double>::full(shape, 1);
  Rng rng(20170612);
  Tensor<double> w = Tensor<double>::uninitialized(shape);
  double* out = w.data();
  for (Index i = 0; i < w.size(); ++i) out[i] = rng.normal();
  return w;
}

double chance_of_miss(double error, double tolerance) {
  const double t = tolerance / error;
  if (t >= 1) return 1;
  // The integral of K0(z) 2 / pi up to t, from its series for small z: -log(z/2) - gamma.
  constexpr double kGamma = 0.57721566490153286;
  return std::min(1.0, 2 * t / std::acos(-1.0) * (std::log(2 / t) - kGamma + 1));
}

template <Real T>
GradReport gradcheck(const Subject<T>& subject, const GradOptions& options) {
  require_sense(options);
  Budget budget(options.seconds);
  GradReport report;
  report.dtype = std::same_as<T, double> ? "f64" : "f32";
  report.step = options.eps > 0 ? options.eps : Precision<T>::kStep;
  report.tolerance = options.rtol > 0          ? options.rtol
                     : std::same_as<T, double> ? kGradTolerance
                                               : kGradToleranceFloat;
  const Seen<T> seen = see(subject);
  require(!seen.y.empty(), "gradcheck: the forward pass gives no result");
  Audit<T> found = audit(subject, seen, options);
  report.problems = std::move(found.problems);
  report.notes = std::move(found.notes);
  report.diagnosis = std::move(found.diagnosis);
  std::vector<Index> places;
  if (found.comparable) {
    places = compare(subject, seen, found, options, budget, report);
    add_unused(subject, seen, report, places);
    take_worst(report, options.fast);
  }
  if (!report.problems.empty()) report.verdict = Verdict::fail;
  note_what_to_know(report, options, found.comparable);
  if (!fails(report.tensors) || !options.diagnose) return report;
  if (options.fast) return told_by_elements(subject, options, budget, std::move(report));
  if (report.diagnosis.fault == Fault::none)
    report.diagnosis = diagnose(subject, seen, report, places, options, budget);
  return report;
}

template <Real T>
GradReport gradcheck(const std::type_identity_t<Function<T>>& f, std::vector<Tensor<T>> inputs,
                     const GradOptions& options) {
  const Subject<T> subject{[&](Tape<T>& tape) {
                             std::vector<Var<T>> leaves;
                             for (const Tensor<T>& x : inputs) leaves.push_back(tape.leaf(x));
                             return f(leaves);
                           },
                           {}};
  return gradcheck(subject, options);
}

template GradReport gradcheck(const Subject<float>&, const GradOptions&);
template GradReport gradcheck(const Subject<double>&, const GradOptions&);
template GradReport gradcheck<float>(const Function<float>&, std::vector<Tensor<float>>,
                                     const GradOptions&);
template GradReport gradcheck<double>(const Function<double>&, std::vector<Tensor<double>>,
                                      const GradOptions&);

}  // namespace headwise
