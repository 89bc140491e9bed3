#include "autograd/judge.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace headwise {
namespace {

/// An element is near a kink when the slopes on its two sides differ by this part of the largest
/// gradient.
constexpr double kKink = 1e-4;
/// What one-sided slopes differ by without any kink, in the unit of kSlopeNoise.
constexpr double kBendNoise = 64;
/// How many times the usual doubt of a tensor's slopes an error may be that rounding explains.
constexpr double kDoubts = 10;
/// How many times better than with the analytic value slopes over other steps must agree with the
/// first to be no rounding inside.
constexpr double kSure = 10;

}  // namespace

void Judge::hear(std::span<const double> analytic, std::span<const Slope> slopes, double known) {
  gradient_ = known;
  for (const double a : analytic)
    if (std::isfinite(a)) gradient_ = std::max(gradient_, std::fabs(a));
  // A deep forward pass rounds more than its result shows: then extrapolations do not agree, by
  // much the same for all elements.
  std::vector<double> doubts;
  for (const Slope& s : slopes) {
    if (!s.known()) continue;
    gradient_ = std::max(gradient_, std::fabs(s.value));
    doubts.push_back(s.doubt);
  }
  noise_ = kSlopeNoise * tolerance_ * floor_;
  if (doubts.empty()) return;
  const auto middle = doubts.begin() + static_cast<std::ptrdiff_t>(doubts.size() / 2);
  std::nth_element(doubts.begin(), middle, doubts.end());
  noise_ = std::max(noise_, kDoubts * *middle);
}

double Judge::size() const { return std::max(gradient_, floor_); }

Ruling Judge::rule(double analytic, const Slope& s, FunctionRef<bool(double)> agrees) const {
  if (!std::isfinite(analytic)) return Ruling::wrong;
  if (!s.known()) return Ruling::no_slope;
  const double off = std::fabs(analytic - s.value), bend = std::fabs(s.left - s.right);
  const bool suspicious = off > std::max(tolerance_ * size(), atol_);
  if (bend > kBendNoise * std::max(tolerance_ * floor_, inside_) &&
      (bend > kKink * size() || (suspicious && 2 * bend >= off)))
    return Ruling::kink;
  if (!suspicious) return Ruling::right;
  if (off <= noise_) return Ruling::rounding;
  if (off <= s.doubt) return Ruling::bent;
  // No digit at all agrees where the difference is as large as the slope itself.
  if (off <= kSlopeNoise * inside_ && !(std::fabs(s.value) > off / kSure && agrees(off / kSure)))
    return Ruling::rounding;
  return Ruling::wrong;
}

}  // namespace headwise
