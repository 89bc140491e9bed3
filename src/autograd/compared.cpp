#include "autograd/compared.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headwise {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// The part of a tensor's elements near a kink above which it proves nothing.
constexpr double kMostSkipped = 0.1;

/// What was found of the elements of a tensor.
struct Count {
  Index unresolved = 0, no_slope = 0;
  bool reshaped = false, too_many_kinks = false;
  const Slope* lost = nullptr;  // the first that is none
  Index lost_at = 0;
};

std::string why_no_slope(const Compared& t, const Count& count) {
  const std::string where = t.directed ? "" : fmt::format("element {}: ", count.lost_at);
  const std::string others =
      count.no_slope > 1 ? fmt::format("; so for {} of {}", count.no_slope, t.taken()) : "";
  if (!count.lost->thrown.empty())
    return fmt::format("{}the forward pass throws '{}' one step away ({:.0e}{}){}", where,
                       count.lost->thrown, t.check.step, ", and smaller ones", others);
  return fmt::format(
      "{}the result {} one step away ({:.0e}, and smaller ones), so there is nothing to compare "
      "with: it is at the edge of where the function is finite{}",
      where, count.lost->overflow ? "overflows" : "is NaN", t.check.step, others);
}

std::string note_of(const Compared& t, const Terms& terms, const Count& count, double gradient) {
  const TensorCheck& c = t.check;
  if (count.reshaped)
    return fmt::format("the result's shape, {} here, changes when it moves", terms.result);
  if (c.verdict == Verdict::fail)
    return t.reached ? "" : "no gradient reaches it, but the result changes with it";
  if (c.verdict == Verdict::pass) return c.floor < gradient ? "" : "zero, as it is in theory";
  if (c.shape.size() == 0) return "it has no elements";
  if (count.lost != nullptr) return why_no_slope(t, count);
  if (!t.reached && gradient == 0)
    return "no gradient reaches it, and the result does not change with it: there is nothing to "
           "prove";
  if (count.unresolved > 0)
    return fmt::format("{} of {} differences are within what rounding and the step allow",
                       count.unresolved, c.elements);
  if (count.too_many_kinks)
    return fmt::format("{} of {} elements are near a kink", c.skipped, c.elements);
  return gradient == 0 ? "its gradient is zero on both sides"
                       : "its gradient is below what rounding may hide";
}

}  // namespace

std::vector<double> Compared::analytic() const {
  if (directed) return {check.analytic};
  std::vector<double> values;
  for (std::size_t i = 0; i < taken(); ++i) values.push_back(gradient.data()[order[i]]);
  return values;
}

void conclude(Compared& t, const Terms& terms, FunctionRef<bool(std::size_t, double)> agrees) {
  TensorCheck& c = t.check;
  const std::vector<double> analytic = t.analytic();
  const std::span<const Slope> slopes(t.slopes.data(), analytic.size());
  Judge judge(terms.tolerance, terms.atol, c.floor, terms.inside);
  judge.hear(analytic, slopes, t.known);

  if (!t.directed) {
    c.a = Tensor<double>::full(c.shape, kNaN);
    c.n = c.a;
  }
  double *a_out = c.a.data(), *n_out = c.n.data();
  Count count;
  c.skipped = t.too_far = 0;
  double gap = -1;
  bool wrong = false;
  for (std::size_t i = 0; i < analytic.size(); ++i) {
    const Slope& s = slopes[i];
    const Index element = t.directed ? 0 : t.order[i];
    count.reshaped = count.reshaped || s.reshaped;
    if (s.reshaped) continue;
    const Ruling ruling =
        judge.rule(analytic[i], s, [&](double within) { return agrees(i, within); });
    if (ruling == Ruling::kink) c.skipped += t.directed ? c.elements : 1;
    t.too_far += asks_for_smaller_steps(ruling);
    if ((ruling == Ruling::rounding || ruling == Ruling::bent) && !terms.zero_in_theory)
      ++count.unresolved;
    if (ruling == Ruling::no_slope && ++count.no_slope == 1)
      count.lost = &s, count.lost_at = element;
    if (ruling != Ruling::right && ruling != Ruling::wrong) continue;
    wrong = wrong || ruling == Ruling::wrong;
    if (!t.directed) a_out[element] = analytic[i], n_out[element] = s.value;
    const double off = std::fabs(analytic[i] - s.value);
    if (std::isnan(gap) || off <= gap) continue;
    gap = off;
    c.at = element;
    c.analytic = analytic[i];
    c.numeric = s.value;
  }
  if (t.directed && gap < 0) c.numeric = slopes[0].value;
  c.worst = gap <= 0 ? 0 : gap / judge.size();  // NaN stays NaN
  count.too_many_kinks =
      static_cast<double>(c.skipped) > kMostSkipped * static_cast<double>(analytic.size());
  const bool open = count.too_many_kinks || count.unresolved > 0 || count.no_slope > 0;
  c.verdict = wrong || count.reshaped                              ? Verdict::fail
              : open                                               ? Verdict::inconclusive
              : c.floor < judge.gradient() || terms.zero_in_theory ? Verdict::pass
                                                                   : Verdict::inconclusive;
  if (c.verdict == Verdict::inconclusive && count.lost != nullptr && !t.directed) {
    c.at = count.lost_at;
    c.analytic = t.gradient.data()[c.at];
    c.numeric = kNaN;
  }
  c.note = note_of(t, terms, count, judge.gradient());
}

}  // namespace headwise
