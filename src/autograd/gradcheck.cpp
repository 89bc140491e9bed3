#include "headwise/autograd/gradcheck.hpp"

#include <algorithm>
#include <cmath>

#include "headwise/core/random.hpp"

namespace headwise {
namespace {

constexpr double kUnit = 2.2e-16;  // a double's rounding
constexpr double kStep = 1e-3;

/// d sum(w y) / d x[i]: central differences over h, h/2 and h/4, each pair of which removes the
/// next even power of the step.
double slope(const std::function<Tensor<double>()>& evaluate, const Tensor<double>& w,
             Tensor<double>& x, Index i, double h) {
  const double at = x.data()[i];
  const auto central = [&](double step) {
    x.data()[i] = at + step;
    const Tensor<double> above = evaluate();
    x.data()[i] = at - step;
    const Tensor<double> below = evaluate();
    x.data()[i] = at;
    require(above.shape() == w.shape() && below.shape() == w.shape(),
            "gradcheck: the result's shape changes with its input: {} and {}", above.shape(),
            w.shape());
    double sum = 0;
    for (Index j = 0; j < w.size(); ++j) sum += w.data()[j] * (above.data()[j] - below.data()[j]);
    return sum / ((at + step) - (at - step));
  };
  const double d1 = central(h), d2 = central(h / 2), d4 = central(h / 4);
  const double e1 = (4 * d2 - d1) / 3, e2 = (4 * d4 - d2) / 3;
  return (16 * e2 - e1) / 15;
}

/// max |x|, or NaN when there is one.
double largest(const Tensor<double>& x) {
  double most = 0;
  for (const double v : x.values()) most = std::isnan(v) ? v : std::max(most, std::fabs(v));
  return most;
}

}  // namespace

Tensor<double> projection(const Shape& shape) {
  Rng rng(20170612);
  Tensor<double> w = Tensor<double>::uninitialized(shape);
  double* out = w.data();
  for (Index i = 0; i < w.size(); ++i) out[i] = rng.normal();
  return w;
}

namespace {

struct GradSubject {
  std::string name;
  Tensor<double>* value;
  Tensor<double> analytic;
};

GradReport compare_gradients(const std::function<Tensor<double>()>& evaluate,
                             std::vector<GradSubject> subjects) {
  const Tensor<double> y = evaluate(), w = projection(y.shape());
  double scale = 0;
  for (Index i = 0; i < y.size(); ++i) scale += std::fabs(w.data()[i] * y.data()[i]);

  GradReport report;
  report.verdict = Verdict::pass;
  bool any = false;
  for (GradSubject& s : subjects) {
    require(s.analytic.shape() == s.value->shape(), "gradcheck: {}: gradient {} of a value {}",
            s.name, s.analytic.shape(), s.value->shape());
    const double size = largest(*s.value);
    const double h = size > 0 ? std::min(kStep, kStep * size) : kStep;
    const double floor = kUnit * scale / h / kGradTolerance;
    double most = floor, gradient = 0, gap = -1;
    Index at = 0;
    double analytic = 0, numeric = 0;
    for (Index i = 0; i < s.value->size(); ++i) {
      const double a = s.analytic.data()[i], n = slope(evaluate, w, *s.value, i, h);
      gradient = std::max({gradient, std::fabs(a), std::fabs(n)});
      if (!(std::fabs(a - n) <= gap)) gap = std::fabs(a - n), at = i, analytic = a, numeric = n;
      if (std::isnan(gap)) break;
    }
    report.elements += s.value->size();
    most = std::max(most, gradient);
    const double worst = gap <= 0 ? 0 : gap / most;  // NaN stays NaN
    const Verdict verdict = !(worst <= kGradTolerance) ? Verdict::fail
                            : !(floor < gradient)      ? Verdict::inconclusive
                                                       : Verdict::pass;
    // The report tells of the input that is worst off: a failure first, then what proved nothing.
    const auto rank = [](Verdict v) { return v == Verdict::fail ? 2 : v == Verdict::pass ? 0 : 1; };
    const bool worse = rank(verdict) > rank(report.verdict) ||
                       (rank(verdict) == rank(report.verdict) && !(worst <= report.worst));
    if (!any || worse) {
      report.verdict = verdict;
      report.worst = worst;
      report.where = fmt::format("{}, element {}", s.name, at);
      report.analytic = analytic;
      report.numeric = numeric;
    }
    any = true;
  }
  if (!any) report.verdict = Verdict::inconclusive;
  return report;
}

}  // namespace

template <>
GradReport gradcheck<double>(const Function<double>& f, std::vector<Tensor<double>> inputs,
                             const GradOptions&) {
  Tape<double> tape;
  std::vector<Var<double>> leaves;
  for (const Tensor<double>& x : inputs) leaves.push_back(tape.leaf(x));
  const Var<double> y = f(leaves);
  if (y.tracked()) tape.backward(y, projection(y.shape()));

  std::vector<GradSubject> subjects;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    subjects.push_back(
        {fmt::format("input {}", i), &inputs[i],
         y.tracked() ? tape.grad(leaves[i]) : Tensor<double>::zeros(inputs[i].shape())});
  const auto evaluate = [&] {
    return f(std::vector<Var<double>>(inputs.begin(), inputs.end())).value();
  };
  return compare_gradients(evaluate, std::move(subjects));
}

}  // namespace headwise
