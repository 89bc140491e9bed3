#include "autograd/sweep.hpp"

#include <algorithm>
#include <cmath>

#include "autograd/slope.hpp"

namespace headwise {
namespace {

/// Of steps, how far apart the slopes on the two sides are that make a kink.
constexpr double kStepApart = 1e-3;
/// How many times the rounding of a result explains a difference.
constexpr double kRoundings = 10;

/// Slopes that differ on the two sides at every step: a kink. Else, where neighbouring steps
/// agree best, neither rounding nor curvature disturbs: a difference that is left there is wrong.
Trend trend(const std::vector<SweepStep>& sweep, const TensorCheck& t, double tolerance) {
  const auto bend = [](const SweepStep& x) { return std::fabs(x.left - x.right); };
  const SweepStep *straight = nullptr, *steady = nullptr, *before = nullptr;
  double least = HUGE_VAL;
  for (const SweepStep& s : sweep) {
    if (!std::isfinite(s.numeric) || !std::isfinite(bend(s))) continue;
    if (straight == nullptr || bend(s) < bend(*straight)) straight = &s;
    const double change = before == nullptr ? HUGE_VAL : std::fabs(s.numeric - before->numeric);
    if (change < least) least = change, steady = &s;
    before = &s;
  }
  if (steady == nullptr) return Trend::wrong;
  const auto noise = [&](const SweepStep& s) {
    return kRoundings * t.floor * tolerance * t.step / s.step;
  };
  if (bend(*straight) > noise(*straight) &&
      bend(*straight) >
          kStepApart * std::max(std::fabs(straight->left), std::fabs(straight->right)) &&
      2 * bend(*straight) >= straight->difference)
    return Trend::kink;
  return steady->difference <= noise(*steady) ? Trend::rounding : Trend::wrong;
}

}  // namespace

template <Real T>
void sweep(const Subject<T>& subject, const Seen<T>& seen, const TensorCheck& t, Index place,
           double tolerance, Diagnosis& found) {
  const Tensor<double> w = projection(seen.y.shape());
  Tensor<T> x = seen.value(place);
  ElementLine<T, std::function<Tensor<T>(const Tensor<T>&)>> line(
      x, t.at, [&](const Tensor<T>& moved) { return with(subject, place, moved); });
  const double scale = step_for(x, 1.0);
  for (double h = 0.1 * scale; h > 1e-9 * scale; h /= 10) {
    if (line.distance(h) == 0 || line.distance(-h) == 0) break;  // lost in rounding
    try {
      const Difference d = difference(seen.y, w.values(), h, line);
      found.sweep.push_back({h, d.central, d.left, d.right, std::fabs(t.analytic - d.central)});
    } catch (...) {  // the forward pass does not take that step
    }
  }
  found.trend = trend(found.sweep, t, tolerance);
}

template void sweep(const Subject<float>&, const Seen<float>&, const TensorCheck&, Index, double,
                    Diagnosis&);
template void sweep(const Subject<double>&, const Seen<double>&, const TensorCheck&, Index, double,
                    Diagnosis&);

}  // namespace headwise
