#include "autograd/compare.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "autograd/compared.hpp"
#include "headwise/core/parallel.hpp"
#include "headwise/core/random.hpp"

namespace headwise {
namespace {

/// The part of the time that elements take; the rest is for what does not pass.
constexpr double kMeasuring = 0.5;

std::vector<Index> all_of(Index n) {
  std::vector<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// In turn the element with the next largest gradient and one drawn at random: of a table few
/// rows of which were used, random ones would say nothing.
std::vector<Index> telling_order(const Tensor<double>& gradient, Rng rng) {
  const double* g = gradient.data();
  std::vector<Index> largest = all_of(gradient.size()), order;
  std::stable_sort(largest.begin(), largest.end(),
                   [&](Index i, Index j) { return std::fabs(g[i]) > std::fabs(g[j]); });
  const std::vector<Index> random = rng.permutation(gradient.size());
  std::vector<bool> taken(largest.size());
  for (std::size_t i = 0; i < largest.size(); ++i)
    for (const Index element : {largest[i], random[i]}) {
      if (taken[static_cast<std::size_t>(element)]) continue;
      taken[static_cast<std::size_t>(element)] = true;
      order.push_back(element);
    }
  return order;
}

template <Real T>
Tensor<double> in_double(const Tensor<T>& x) {
  if constexpr (std::same_as<T, double>)
    return x;
  else
    return convert<double>(x);
}

template <Real T>
class Comparison {
 public:
  Comparison(const Subject<T>& subject, const Seen<T>& seen, const Audit<T>& audit,
             const GradOptions& options, Budget& budget, GradReport& report)
      : subject_(subject),
        seen_(seen),
        options_(options),
        budget_(budget),
        report_(report),
        w_(projection(seen.y.shape())) {
    for (Index place = 0; place < static_cast<Index>(seen.values.size()); ++place) {
      for (const T v : seen.value(place).values())
        if (std::isfinite(v))
          inner_scale_ = std::max(inner_scale_, std::fabs(static_cast<double>(v)));
      if (seen.is_input(place)) tensors_.push_back(tensor(place, audit));
    }
    inner_scale_ *= largest(w_);
  }

  std::vector<Index> run() {
    measure_all();
    std::vector<Index> places;
    for (Compared& t : tensors_) {
      judge(t);
      try_other_steps(t);
      places.push_back(t.place);
      report_.tensors.push_back(std::move(t.check));
    }
    return places;
  }

 private:
  Compared tensor(Index place, const Audit<T>& audit) {
    Compared t;
    const Tensor<T>& x = seen_.value(place);
    t.place = place;
    t.directed = options_.fast;
    t.check.name = name_at(subject_, seen_, place);
    t.check.shape = x.shape();
    set_step(t, step_for(x, report_.step));
    const Tensor<T>& g = audit.gradients[static_cast<std::size_t>(place)];
    t.reached = !g.empty();
    t.gradient = t.reached ? in_double(g) : Tensor<double>::zeros(x.shape());
    if (options_.fast) {
      aim(t);
      return t;
    }
    for (const double a : std::as_const(t.gradient).values())
      if (std::isfinite(a)) t.known = std::max(t.known, std::fabs(a));
    const Rng rng(options_.seed, static_cast<std::uint64_t>(place));
    t.order = options_.sample > 0 || options_.seconds > 0 ? telling_order(t.gradient, rng)
                                                          : all_of(x.size());
    if (options_.sample > 0 && options_.sample < x.size())
      t.order.resize(static_cast<std::size_t>(options_.sample));
    t.slopes.resize(t.order.size());
    return t;
  }

  [[nodiscard]] Tensor<double> direction(const Compared& t) const {
    Rng rng(options_.seed, static_cast<std::uint64_t>(t.place));
    return normal_tensor<double>(t.check.shape, 1, rng);
  }

  /// A direction stands for the tensor: one number each, and the norm for the largest.
  void aim(Compared& t) const {
    const Tensor<double> v = direction(t);
    const double *g = std::as_const(t.gradient).data(), *to = v.data();
    double norm = 0;
    for (Index e = 0; e < v.size(); ++e) {
      t.check.analytic += g[e] * to[e];
      norm += g[e] * g[e];
    }
    t.known = std::isfinite(norm) ? std::sqrt(norm) : 0;
    t.check.elements = v.size();
    t.slopes.resize(1);
  }

  void set_step(Compared& t, double step) {
    t.check.step = step;
    t.check.floor = floor_of(seen_.y, w_, step, report_.tolerance);
  }

  void measure_all() {
    if (!options_.fast) return by_element();
    parallel_for(static_cast<Index>(tensors_.size()), 1, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) along_direction(tensors_[static_cast<std::size_t>(i)]);
    });
    budget_.element_takes(budget_.spent() / static_cast<double>(tensors_.size() + 1));
  }

  /// Rounds of some elements of each tensor, until all are done or the time is.
  void by_element() {
    struct Task {
      Compared* tensor;
      Index begin, end;
    };
    constexpr Index kBlock = 8;
    const double before = budget_.spent();
    Index done = 0, round = options_.seconds > 0 ? 2 : std::numeric_limits<Index>::max() / 2;
    for (bool more = true; more && !(done > 0 && budget_.over(kMeasuring));) {
      std::vector<Task> tasks;
      more = false;
      for (Compared& t : tensors_) {
        const auto all = static_cast<Index>(t.order.size());
        const Index end = std::min(all, done + round);
        for (Index i = done; i < end; i += kBlock)
          tasks.push_back({&t, i, std::min(end, i + kBlock)});
        t.check.elements = end;
        more = more || end < all;
      }
      parallel_for(static_cast<Index>(tasks.size()), 1, [&](Index begin, Index end) {
        for (Index i = begin; i < end; ++i) {
          const Task& task = tasks[static_cast<std::size_t>(i)];
          differentiate(*task.tensor, task.begin, task.end);
        }
      });
      done += round;
      if (!budget_.over(kMeasuring / 8)) round *= 2;
    }
    Index elements = 0;
    for (const Compared& t : tensors_) elements += t.check.elements;
    if (elements > 0)
      budget_.element_takes((budget_.spent() - before) / static_cast<double>(elements));
  }

  void differentiate(Compared& t, Index begin, Index end) {
    Tensor<T> x = seen_.value(t.place);
    for (Index i = begin; i < end; ++i) {
      const auto at = static_cast<std::size_t>(i);
      t.slopes[at] = slope_at(t, x, t.order[at], t.check.step);
    }
  }

  Slope slope_at(const Compared& t, Tensor<T>& x, Index element, double step) {
    const auto run = [&](const Tensor<T>& moved) { return with(subject_, t.place, moved); };
    ElementLine<T, decltype(run)> line(x, element, run);
    return slope(seen_.y, w_.values(), step, line);
  }

  void along_direction(Compared& t) {
    const Tensor<double> v = direction(t);
    const Tensor<T>& x = seen_.value(t.place);
    auto line = plain_line<T>([&](double s) { return with(subject_, t.place, along(x, s, v)); });
    t.slopes[0] = slope(seen_.y, w_.values(), t.check.step, line);
  }

  /// Whether differences over other steps, no power of two of the first ones, give the same slope.
  /// Where a result is a difference of larger numbers they do not: rounding leaves it few digits.
  bool agrees(const Compared& t, std::size_t i, double within) {
    if (t.directed) return false;
    Tensor<T> x = seen_.value(t.place);
    for (const double part : {0.7, 0.45}) {
      const Slope other = slope_at(t, x, t.order[i], part * t.check.step);
      if (!(std::fabs(other.value - t.slopes[i].value) <= within)) return false;
    }
    return true;
  }

  void judge(Compared& t) {
    const Terms terms{report_.tolerance, options_.atol,
                      Precision<T>::kUnit * inner_scale_ / t.check.step,
                      std::any_of(options_.zero_in_theory.begin(), options_.zero_in_theory.end(),
                                  [&](const auto& end) { return t.check.name.ends_with(end); }),
                      seen_.y.shape()};
    conclude(t, terms, [&](std::size_t i, double within) { return agrees(t, i, within); });
  }

  void measure_again(Compared& t, double step) {
    set_step(t, step);
    if (t.directed)
      along_direction(t);
    else
      parallel_for(t.check.elements, 8,
                   [&](Index begin, Index end) { differentiate(t, begin, end); });
    judge(t);
  }

  void try_other_steps(Compared& t) {
    if (t.check.verdict == Verdict::inconclusive && t.too_far > 0) try_smaller_steps(t);
    if (t.check.verdict != Verdict::pass) try_larger_steps(t);
  }

  /// Where a step leads out of what the function takes, over a kink, or to where it bends.
  void try_smaller_steps(Compared& t) {
    Compared again = t;
    for (int k = 0; k < kSmallerSteps && again.too_far > 0 && has_time_for(t); ++k) {
      measure_again(again, again.check.step / 10);
      if (again.check.verdict == Verdict::inconclusive) continue;
      t = std::move(again);
      return;
    }
  }

  /// Up to that of its largest value, or of values of one: agreement is agreement with any step,
  /// while a disagreement may be the larger step's.
  void try_larger_steps(Compared& t) {
    const double most =
        Precision<T>::kLarger * report_.step * std::max(1.0, largest(seen_.value(t.place)));
    Compared again = t;
    while (again.check.step < most && has_time_for(t)) {
      const double step = std::min(most, 10 * again.check.step);
      set_step(again, step);
      if (t.check.verdict == Verdict::fail && worst_stays_wrong(t, step)) continue;
      measure_again(again, step);
      if (again.check.verdict != Verdict::pass) continue;
      t = std::move(again);
      return;
    }
  }

  /// Whether the worst element alone keeps a tensor from passing: then the others need not be
  /// asked.
  bool worst_stays_wrong(const Compared& t, double step) {
    if (t.directed) return false;
    Compared worst = t;
    for (std::size_t i = 0; i < t.taken(); ++i)  // errors are a part of the largest on either side
      if (t.slopes[i].known()) worst.known = std::max(worst.known, std::fabs(t.slopes[i].value));
    worst.order = {t.check.at};
    worst.slopes.resize(1);
    worst.check.elements = 1;
    measure_again(worst, step);
    return worst.check.verdict == Verdict::fail;
  }

  bool has_time_for(Compared& t) {
    constexpr std::string_view kNote = "; there was no time to try other steps";
    if (budget_.elements_left() >= static_cast<Index>(t.taken())) return true;
    if (t.check.verdict == Verdict::inconclusive && !t.check.note.ends_with(kNote))
      t.check.note += kNote;
    return false;
  }

  const Subject<T>& subject_;
  const Seen<T>& seen_;
  const GradOptions& options_;
  Budget& budget_;
  GradReport& report_;
  Tensor<double> w_;
  double inner_scale_ = 0;  // the largest value: a result may be a difference of such
  std::vector<Compared> tensors_;
};

}  // namespace

template <Real T>
std::vector<Index> compare(const Subject<T>& subject, const Seen<T>& seen, const Audit<T>& audit,
                           const GradOptions& options, Budget& budget, GradReport& report) {
  return Comparison<T>(subject, seen, audit, options, budget, report).run();
}

template std::vector<Index> compare(const Subject<float>&, const Seen<float>&, const Audit<float>&,
                                    const GradOptions&, Budget&, GradReport&);
template std::vector<Index> compare(const Subject<double>&, const Seen<double>&,
                                    const Audit<double>&, const GradOptions&, Budget&, GradReport&);

}  // namespace headwise
