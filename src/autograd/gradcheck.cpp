#include "headwise/autograd/gradcheck.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

#include "autograd/audit.hpp"
#include "autograd/diagnose.hpp"
#include "autograd/slope.hpp"
#include "headwise/core/parallel.hpp"
#include "headwise/core/random.hpp"

namespace headwise {
namespace {

/// The part of a tensor's elements near a kink above which it proves nothing.
constexpr double kMostSkipped = 0.1;
/// What one-sided slopes differ by without any kink, in the unit of kSlopeNoise.
constexpr double kBendNoise = 64;

/// How many times the usual doubt of a tensor's slopes an error may be that rounding explains.
constexpr double kDoubts = 10;
/// How many times better than with the analytic value slopes over other steps must agree with the
/// first to be no rounding inside.
constexpr double kSure = 10;

/// One tensor under comparison.
template <Real T>
struct Compared {
  TensorCheck check;
  Index place = -1;
  double step = 0;
  Tensor<T> analytic;  // zeros where none arrived
  bool reached = false;
  double norm = 0;           // of the gradient, in fast mode
  std::vector<Index> order;  // in which elements are taken
  std::vector<Slope> slopes;
};

template <Real T>
class Comparison {
 public:
  Comparison(const Subject<T>& subject, const Seen<T>& seen, const Audit<T>& audit,
             const GradOptions& options, GradReport& report)
      : subject_(subject),
        seen_(seen),
        options_(options),
        report_(report),
        w_(projection(seen.y.shape())) {
    for (Index o = 0; o < w_.size(); ++o)
      scale_ += std::fabs(w_.data()[o] * static_cast<double>(seen.y.data()[o]));
    for (Index place = 0; place < static_cast<Index>(seen.values.size()); ++place) {
      for (const T v : seen.value(place).values())
        if (std::isfinite(v))
          inner_scale_ = std::max(inner_scale_, std::fabs(static_cast<double>(v)));
      if (seen.is_input(place)) tensors_.push_back(tensor(place, audit));
    }
    inner_scale_ *= largest(w_);
  }

  std::vector<Index> run() {
    options_.fast ? along_directions() : by_element();
    std::vector<Index> places;
    for (Compared<T>& t : tensors_) {
      judge(t);
      if (!options_.fast && t.check.verdict != Verdict::pass) try_larger_steps(t);
      places.push_back(t.place);
      report_.tensors.push_back(std::move(t.check));
    }
    return places;
  }

 private:
  Compared<T> tensor(Index place, const Audit<T>& audit) {
    Compared<T> t;
    const Tensor<T>& x = seen_.value(place);
    t.place = place;
    t.check.name = name_at(subject_, seen_, place);
    t.check.shape = x.shape();
    set_step(t, step_for(x, report_.step));
    const Tensor<T>& g = audit.gradients[static_cast<std::size_t>(place)];
    t.reached = !g.empty();
    t.analytic = t.reached ? g : Tensor<T>::zeros(x.shape());
    if (options_.fast) return t;
    t.order = options_.sample > 0 || options_.seconds > 0 ? telling_order(t) : all_of(x.size());
    if (options_.sample > 0 && options_.sample < x.size())
      t.order.resize(static_cast<std::size_t>(options_.sample));
    t.slopes.resize(t.order.size());
    return t;
  }

  static std::vector<Index> all_of(Index n) {
    std::vector<Index> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    return order;
  }

  /// In turn the element with the next largest gradient and one drawn at random: of a table few
  /// rows of which were used, random ones would say nothing.
  std::vector<Index> telling_order(const Compared<T>& t) const {
    const T* g = std::as_const(t.analytic).data();
    std::vector<Index> largest = all_of(t.analytic.size()), order;
    std::stable_sort(largest.begin(), largest.end(),
                     [&](Index i, Index j) { return std::fabs(g[i]) > std::fabs(g[j]); });
    Rng rng(options_.seed, static_cast<std::uint64_t>(t.place));
    const std::vector<Index> random = rng.permutation(t.analytic.size());
    std::vector<bool> taken(largest.size());
    for (std::size_t i = 0; i < largest.size(); ++i)
      for (const Index element : {largest[i], random[i]}) {
        if (taken[static_cast<std::size_t>(element)]) continue;
        taken[static_cast<std::size_t>(element)] = true;
        order.push_back(element);
      }
    return order;
  }

  /// Rounds of some elements of each tensor, until all are done or the time is.
  void by_element() {
    struct Task {
      Compared<T>* tensor;
      Index begin, end;
    };
    constexpr Index kBlock = 8;
    const auto start = std::chrono::steady_clock::now();
    Index done = 0, round = options_.seconds > 0 ? 2 : std::numeric_limits<Index>::max() / 2;
    for (bool more = true; more;) {
      std::vector<Task> tasks;
      more = false;
      for (Compared<T>& t : tensors_) {
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
      const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - start;
      if (options_.seconds > 0 && gone.count() > options_.seconds) break;
      if (gone.count() < options_.seconds / 8) round *= 2;
    }
  }

  void differentiate(Compared<T>& t, Index begin, Index end) {
    Tensor<T> x = seen_.value(t.place);
    const auto run = [&](const Tensor<T>& moved) { return with(subject_, t.place, moved); };
    for (Index i = begin; i < end; ++i) {
      ElementLine<T, decltype(run)> line(x, t.order[static_cast<std::size_t>(i)], run);
      t.slopes[static_cast<std::size_t>(i)] = slope(seen_.y, w_.values(), t.step, line);
    }
  }

  /// Up to a thousandth of its largest value, or to the step of values of one: agreement is
  /// agreement with any step, while a disagreement may be the larger step's.
  void try_larger_steps(Compared<T>& t) {
    const double most = report_.step * std::max(1.0, largest(seen_.value(t.place)));
    Compared<T> again = t;
    while (again.step < most && t.check.verdict != Verdict::pass) {
      set_step(again, std::min(most, 10 * again.step));
      again.check.skipped = 0;
      again.check.note.clear();
      parallel_for(again.check.elements, 8,
                   [&](Index begin, Index end) { differentiate(again, begin, end); });
      judge(again);
      if (again.check.verdict == Verdict::pass) t = again;
    }
  }

  void set_step(Compared<T>& t, double step) {
    t.step = step;
    t.check.floor = Precision<T>::kUnit * scale_ / step / report_.tolerance;
  }

  void along_directions() {
    parallel_for(static_cast<Index>(tensors_.size()), 1, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        Compared<T>& t = tensors_[static_cast<std::size_t>(i)];
        const Tensor<T>& x = seen_.value(t.place);
        Rng rng(options_.seed, static_cast<std::uint64_t>(t.place));
        const Tensor<double> v = normal_tensor<double>(x.shape(), 1, rng);
        auto line =
            plain_line<T>([&](double s) { return with(subject_, t.place, along(x, s, v)); });
        t.slopes = {slope(seen_.y, w_.values(), t.step, line)};
        t.check.elements = x.size();
        // The direction stands for the tensor: one number each, and the norm for the largest.
        double along_v = 0, norm = 0;
        for (Index e = 0; e < v.size(); ++e) {
          const double a = static_cast<double>(t.analytic.data()[e]);
          along_v += a * v.data()[e];
          norm += a * a;
        }
        t.check.analytic = along_v;
        t.norm = std::sqrt(norm);
      }
    });
  }

  /// Whether differences over other steps, no power of two of the first ones, give the same slope.
  /// Where a result is a difference of larger numbers they do not: rounding leaves it few digits.
  bool agrees(const Compared<T>& t, Index element, const Slope& s, double within) {
    if (options_.fast || std::fabs(s.value) <= within) return false;  // flat: no digit at all
    Tensor<T> x = seen_.value(t.place);
    const auto run = [&](const Tensor<T>& moved) { return with(subject_, t.place, moved); };
    for (const double part : {0.7, 0.45}) {
      ElementLine<T, decltype(run)> line(x, element, run);
      const Slope other = slope(seen_.y, w_.values(), part * t.step, line);
      if (!(std::fabs(other.value - s.value) <= within)) return false;
    }
    return true;
  }

  void judge(Compared<T>& t) {
    TensorCheck& c = t.check;
    const auto n = options_.fast ? std::size_t{1} : static_cast<std::size_t>(c.elements);
    std::vector<double> analytic;
    double gradient = t.norm;
    for (std::size_t i = 0; i < n; ++i)
      analytic.push_back(options_.fast ? c.analytic
                                       : static_cast<double>(t.analytic.data()[t.order[i]]));
    for (const double a : analytic)
      if (std::isfinite(a)) gradient = std::max(gradient, std::fabs(a));
    if (!options_.fast)  // of those that are not compared, too
      for (const T a : t.analytic.values())
        if (std::isfinite(a)) gradient = std::max(gradient, std::fabs(static_cast<double>(a)));
    for (std::size_t i = 0; i < n; ++i)
      if (std::isfinite(t.slopes[i].value))
        gradient = std::max(gradient, std::fabs(t.slopes[i].value));
    const double size = std::max(gradient, c.floor), unit = report_.tolerance * c.floor;
    // A deep forward pass rounds more than its result shows: then extrapolations do not agree,
    // by much the same for all elements.
    std::vector<double> doubts;
    for (const Slope& s : t.slopes) doubts.push_back(s.doubt);
    const auto middle = doubts.begin() + static_cast<std::ptrdiff_t>(n / 2);
    std::nth_element(doubts.begin(), middle, doubts.begin() + static_cast<std::ptrdiff_t>(n));
    const double inside = Precision<T>::kUnit * inner_scale_ / t.step;
    const double noise = std::max(kSlopeNoise * unit, n > 0 ? kDoubts * *middle : 0);
    const bool zero = std::any_of(options_.zero_in_theory.begin(), options_.zero_in_theory.end(),
                                  [&](const std::string& end) { return c.name.ends_with(end); });

    if (!options_.fast) {
      c.a = Tensor<double>::full(c.shape, std::numeric_limits<double>::quiet_NaN());
      c.n = c.a;
    }
    double* a_out = c.a.data();
    double* n_out = c.n.data();
    double gap = -1;
    Index unresolved = 0;
    bool overflow = false, reshaped = false;
    for (std::size_t i = 0; i < n; ++i) {
      const Slope& s = t.slopes[i];
      const Index element = options_.fast ? 0 : t.order[i];
      reshaped = reshaped || s.reshaped;
      if (s.reshaped) continue;
      const double off = std::fabs(analytic[i] - s.value);
      if (s.overflow && std::isfinite(analytic[i])) {
        overflow = true;
        continue;
      }
      const double bend = std::fabs(s.left - s.right);
      const bool suspicious = off > report_.tolerance * size + options_.atol;
      if (bend > kBendNoise * std::max(unit, inside) && std::isfinite(analytic[i]) &&
          (bend > kKink * size || (suspicious && 2 * bend >= off))) {
        c.skipped += options_.fast ? c.elements : 1;
        continue;
      }
      // What rounding, or the extrapolation itself, leaves open proves nothing.
      const bool rounding = off <= noise || (suspicious && off <= kSlopeNoise * inside &&
                                             !agrees(t, element, s, off / kSure));
      if (suspicious && rounding && zero) continue;
      if (suspicious && (rounding || off <= s.doubt)) {
        ++unresolved;
        continue;
      }
      if (!options_.fast) a_out[element] = analytic[i], n_out[element] = s.value;
      if (std::isnan(gap) || off <= gap) continue;
      gap = off;
      c.at = element;
      c.analytic = analytic[i];
      c.numeric = s.value;
    }
    if (options_.fast && gap < 0) c.numeric = t.slopes[0].value;
    c.worst = gap <= 0 ? 0 : gap / size;  // NaN stays NaN
    const bool wrong =
        reshaped || (gap > options_.atol && !(c.worst <= report_.tolerance)) || std::isnan(gap);
    const bool too_many = static_cast<double>(c.skipped) > kMostSkipped * static_cast<double>(n);
    c.verdict = wrong                                    ? Verdict::fail
                : too_many || overflow || unresolved > 0 ? Verdict::inconclusive
                : c.floor < gradient || zero             ? Verdict::pass
                                                         : Verdict::inconclusive;
    if (reshaped)
      c.note = fmt::format("the result's shape, {} here, changes when it moves", seen_.y.shape());
    else if (!t.reached)
      c.note = "no gradient reaches it";
    else if (overflow)
      c.note = "the result overflows when it moves";
    else if (unresolved > 0)
      c.note = fmt::format("{} of {} differences are within what rounding and the step allow",
                           unresolved, c.elements);
    else if (too_many)
      c.note = fmt::format("{} of {} elements are near a kink", c.skipped, c.elements);
    else if (c.verdict == Verdict::inconclusive)
      c.note = gradient == 0 ? "its gradient is zero on both sides"
                             : "its gradient is below what rounding may hide";
    else if (c.verdict == Verdict::pass && !(c.floor < gradient))
      c.note = "zero, as it is in theory";
  }

  const Subject<T>& subject_;
  const Seen<T>& seen_;
  const GradOptions& options_;
  GradReport& report_;
  Tensor<double> w_;
  double scale_ = 0;        // sum |w y|
  double inner_scale_ = 0;  // the largest value: a result may be a difference of such
  std::vector<Compared<T>> tensors_;
};

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
  require<UsageError>(
      options.eps >= 0 && options.rtol >= 0 && options.atol >= 0 && options.nondet_tol >= 0 &&
          options.seconds >= 0 && options.sample >= 0,
      "gradcheck: eps {}, rtol {}, atol {}, nondet_tol {}, seconds {} and sample {} "
      "must not be negative",
      options.eps, options.rtol, options.atol, options.nondet_tol, options.seconds, options.sample);
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
    places = Comparison<T>(subject, seen, found, options, report).run();
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
    take_worst(report, options.fast);
  }
  if (!report.problems.empty()) report.verdict = Verdict::fail;
  for (const TensorCheck& t : report.tensors)
    if (!t.note.empty()) report.notes.push_back(fmt::format("{}: {}", t.name, t.note));
  if (report.skipped > 0)
    report.notes.push_back(fmt::format(
        "{} of {} elements not compared: near a kink, where the slopes on the two sides differ",
        report.skipped, report.elements));
  if (options.fast)
    report.notes.push_back(fmt::format(
        "one random direction of each tensor: an error of 1 % of its gradient goes unseen with "
        "probability {:.1e}, one of 0.01 % with {:.1e}",
        chance_of_miss(1e-2, report.tolerance), chance_of_miss(1e-4, report.tolerance)));
  if constexpr (std::same_as<T, float>)
    report.notes.push_back(fmt::format(
        "in float: step {:.0e}, tolerance {:.0e}; double sees ten thousand times smaller mistakes",
        report.step, report.tolerance));
  const bool values_fail = std::any_of(report.tensors.begin(), report.tensors.end(),
                                       [](const auto& t) { return t.verdict == Verdict::fail; });
  if (values_fail && options.diagnose && options.fast) {
    // A direction says that something is wrong, elements say what.
    GradOptions by_element = options;
    by_element.fast = false;
    if (by_element.sample == 0) by_element.sample = 256;
    GradReport found_there = gradcheck(subject, by_element);
    if (found_there.verdict == Verdict::fail) return found_there;
    report.diagnosis.fault = Fault::other;
    report.diagnosis.reason = fmt::format(
        "wrong along a random direction, but at none of {} elements", found_there.elements);
    return report;
  }
  if (values_fail && options.diagnose && report.diagnosis.fault == Fault::none) try {
      report.diagnosis = diagnose(subject, seen, report, places, options);
    } catch (const Error& e) {  // a forward pass that is not one function near this point
      report.diagnosis.fault = Fault::other;
      report.diagnosis.reason = e.what();
    }
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
