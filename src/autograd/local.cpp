#include "autograd/local.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/judge.hpp"
#include "headwise/core/parallel.hpp"
#include "headwise/core/random.hpp"

namespace headwise {
namespace {

/// Products that looking for the kind of a mistake may take, again and again (about a second).
constexpr Index kWork = 100'000'000;
/// Numbers of a Jacobian that are held.
constexpr Index kJacobian = 1 << 20;
/// Elements that are looked at when it would be more, and when time is short.
constexpr Index kElements = 256, kFewElements = 8;
/// The part of the largest gradient below which nothing is said of an element.
constexpr double kSilent = 1e-6;

template <Real T>
class Alone {
 public:
  Alone(const Subject<T>& subject, const Seen<T>& seen, Index record, Index place,
        const Tensor<T>& analytic, const GradReport& report, std::uint64_t seed)
      : subject_(subject),
        seen_(seen),
        record_(record),
        place_(place),
        analytic_(analytic),
        tolerance_(report.tolerance),
        seed_(seed),
        x_(seen.value(place)),
        y_(seen.value(record)),
        w_(projection(y_.shape())),
        h_(step_for(x_, report.step)) {}

  LocalCheck run(Index time_for) {
    LocalGradient& g = c_.gradient;
    g.in = x_.shape();
    g.out = y_.shape();
    g.w.assign(w_.values().begin(), w_.values().end());
    Index longest = y_.shape().rows();  // places of the result that are left out in turn
    for (const Index size : y_.shape().sizes()) longest = std::max(longest, size);
    const Index numbers = x_.size() * y_.size();
    const bool whole = numbers <= kJacobian && numbers * longest <= kWork && x_.size() <= time_for;
    choose(whole ? x_.size() : std::clamp(time_for, kFewElements, kElements));
    // Smaller steps where one leads out of what the record takes, over a kink, or to where it
    // bends.
    LocalCheck best;
    Index least = 0;
    for (int k = 0; k <= kSmallerSteps; ++k, h_ /= 10) {
      measure(whole);
      const Index too_far = judge();
      if (k == 0 || too_far < least) best = c_, least = too_far;
      if (least == 0) break;
    }
    return best;
  }

 private:
  Tensor<T> result(const Tensor<T>& x) const { return alone(subject_, seen_, record_, place_, x); }
  [[nodiscard]] double own(Index element) const {
    return analytic_.empty() ? 0 : static_cast<double>(analytic_.data()[element]);
  }

  void choose(Index most) {
    elements_.resize(static_cast<std::size_t>(x_.size()));
    std::iota(elements_.begin(), elements_.end(), 0);
    if (most < x_.size()) {
      Rng rng(seed_);
      elements_ = rng.permutation(x_.size());
      elements_.resize(static_cast<std::size_t>(most));
      elements_.push_back(by_halves());
      std::sort(elements_.begin(), elements_.end());
      elements_.erase(std::unique(elements_.begin(), elements_.end()), elements_.end());
    }
    c_.looked_at = std::ssize(elements_);
  }

  /// Of the two halves of a random direction, what is wrong is where their slopes are: down to one
  /// element.
  Index by_halves() {
    Rng rng(seed_, static_cast<std::uint64_t>(place_));
    const Tensor<double> all = normal_tensor<double>(x_.shape(), 1, rng);
    const auto error = [&](Index begin, Index end) {
      Tensor<double> part = Tensor<double>::zeros(x_.shape());
      std::copy(all.data() + begin, all.data() + end, part.data() + begin);
      auto line = plain_line<T>([&](double s) { return result(along(x_, s, part)); });
      const Slope s = slope(y_, w_.values(), h_, line);
      double right = 0;
      for (Index e = begin; e < end; ++e) right += own(e) * all.data()[e];
      return s.known() && std::isfinite(right) ? std::fabs(right - s.value) : 0;
    };
    Index begin = 0, end = x_.size();
    while (end - begin > 1) {
      const Index middle = begin + (end - begin) / 2;
      (error(begin, middle) >= error(middle, end) ? end : begin) = middle;
    }
    return begin;
  }

  void measure(bool whole) {
    const auto outputs = static_cast<std::size_t>(y_.size());
    slopes_.resize(elements_.size());
    if (whole) c_.gradient.jacobian.resize(elements_.size() * outputs);
    const auto run = [&](const Tensor<T>& x) { return result(x); };
    parallel_for(std::ssize(elements_), 8, [&](Index begin, Index end) {
      Tensor<T> moving = x_;
      for (Index i = begin; i < end; ++i) {
        const auto at = static_cast<std::size_t>(i);
        ElementLine<T, decltype(run)> line(moving, elements_[at], run);
        const std::span<double> each =
            whole ? std::span(c_.gradient.jacobian).subspan(at * outputs, outputs)
                  : std::span<double>();
        slopes_[at] = slope(y_, w_.values(), h_, line, each);
      }
    });
  }

  /// Returns for how many elements the step is too large.
  Index judge() {
    LocalGradient& g = c_.gradient;
    g.analytic.clear(), g.numeric.clear();
    for (const Index element : elements_) g.analytic.push_back(own(element));
    Judge judge(tolerance_, 0, floor_of(y_, w_, h_, tolerance_), 0);
    judge.hear(g.analytic, slopes_);
    c_.marks.assign(static_cast<std::size_t>(x_.size()), Mark::silent);
    c_.wrong = false;
    Index too_far = 0;
    double worst = 0;
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      const double a = g.analytic[i], n = slopes_[i].value, gap = std::fabs(a - n);
      const Ruling ruling = judge.rule(a, slopes_[i], [](double) { return true; });
      too_far += asks_for_smaller_steps(ruling);
      const bool nothing = ruling == Ruling::kink || ruling == Ruling::no_slope;
      g.numeric.push_back(nothing ? a : n);
      Mark& mark = c_.marks[static_cast<std::size_t>(elements_[i])];
      if (ruling == Ruling::wrong)
        mark = Mark::wrong;
      else if (!nothing && std::max(std::fabs(a), std::fabs(n)) > kSilent * judge.size())
        mark = Mark::right;
      if (ruling != Ruling::wrong || (c_.wrong && gap <= worst)) continue;
      c_.wrong = true;
      worst = gap;
      c_.at = elements_[i];
      c_.analytic = a;
      c_.numeric = n;
    }
    return too_far;
  }

  const Subject<T>& subject_;
  const Seen<T>& seen_;
  Index record_, place_;
  const Tensor<T>& analytic_;
  double tolerance_;
  std::uint64_t seed_;
  const Tensor<T>&x_, &y_;
  Tensor<double> w_;
  double h_;
  std::vector<Index> elements_;
  std::vector<Slope> slopes_;
  LocalCheck c_;
};

}  // namespace

template <Real T>
LocalCheck check_alone(const Subject<T>& subject, const Seen<T>& seen, Index record, Index place,
                       const Tensor<T>& analytic, const GradReport& report, std::uint64_t seed,
                       Index time_for) {
  return Alone<T>(subject, seen, record, place, analytic, report, seed).run(time_for);
}

template LocalCheck check_alone(const Subject<float>&, const Seen<float>&, Index, Index,
                                const Tensor<float>&, const GradReport&, std::uint64_t, Index);
template LocalCheck check_alone(const Subject<double>&, const Seen<double>&, Index, Index,
                                const Tensor<double>&, const GradReport&, std::uint64_t, Index);

}  // namespace headwise
