#include "autograd/diagnose.hpp"

#include <algorithm>
#include <cmath>

#include "autograd/fault.hpp"
#include "autograd/region.hpp"
#include "autograd/slope.hpp"
#include "headwise/core/parallel.hpp"
#include "headwise/core/random.hpp"

namespace headwise {
namespace {

/// Products that looking for the kind of a mistake may take, again and again (about a second).
constexpr Index kWork = 100'000'000;
/// Numbers of a Jacobian that are held, elements of an input that are looked at when it would be
/// more, and groups of results whose gradients are looked at.
constexpr Index kJacobian = 1 << 20, kElements = 256, kGroups = 48;

template <Real T>
class Diagnostician {
 public:
  Diagnostician(const Subject<T>& subject, const Seen<T>& seen, const GradReport& report,
                const std::vector<Index>& places, const GradOptions& options)
      : subject_(subject), seen_(seen), report_(report), places_(places), options_(options) {}

  Diagnosis run() {
    const TensorCheck* worst = nullptr;
    std::size_t at = 0;
    for (std::size_t i = 0; i < report_.tensors.size(); ++i) {
      const TensorCheck& t = report_.tensors[i];
      if (t.verdict == Verdict::fail && (worst == nullptr || !(t.worst <= worst->worst)))
        worst = &t, at = i;
    }
    if (worst == nullptr || places_[at] < 0) return std::move(found_);
    sweep(*worst, places_[at]);
    if (seen_.place < 0) {
      found_.fault = Fault::other;
      found_.reason = "the result was not recorded: to the tape it is a constant";
      return std::move(found_);
    }
    if (!first_wrong_record() && !unlisted_input()) classify_whole();
    return std::move(found_);
  }

 private:
  [[nodiscard]] Index count() const { return static_cast<Index>(seen_.values.size()); }
  [[nodiscard]] const std::vector<Index>& inputs_of(Index record) const {
    return seen_.entries[static_cast<std::size_t>(record)].inputs;
  }

  void sweep(const TensorCheck& t, Index place) {
    const Tensor<double> w = projection(seen_.y.shape());
    Tensor<T> x = seen_.value(place);
    ElementLine<T, std::function<Tensor<T>(const Tensor<T>&)>> line(
        x, t.at, [&](const Tensor<T>& moved) { return with(subject_, place, moved); });
    const double scale = step_for(x, 1.0);
    for (double h = 0.1 * scale; h > 1e-9 * scale; h /= 10) {
      if (line.distance(h) == 0 || line.distance(-h) == 0) break;  // lost in rounding
      const Difference d = difference(seen_.y, w.values(), h, line);
      found_.sweep.push_back({h, d.central, d.left, d.right, std::fabs(t.analytic - d.central)});
    }
    found_.trend = trend(t);
  }

  /// Slopes that differ on the two sides at every step: a kink. Else, where neighbouring steps
  /// agree best, neither rounding nor curvature disturbs: a difference that is left there is wrong.
  [[nodiscard]] Trend trend(const TensorCheck& t) const {
    const SweepStep *straight = nullptr, *steady = nullptr;
    double least = HUGE_VAL;
    for (std::size_t i = 0; i < found_.sweep.size(); ++i) {
      const SweepStep& s = found_.sweep[i];
      const auto bend = [](const SweepStep& x) { return std::fabs(x.left - x.right); };
      if (straight == nullptr || bend(s) < bend(*straight)) straight = &s;
      if (i == 0) continue;
      const double change = std::fabs(s.numeric - found_.sweep[i - 1].numeric);
      if (change < least) least = change, steady = &s;
    }
    if (steady == nullptr) return Trend::wrong;
    const double bend = std::fabs(straight->left - straight->right);
    const auto noise = [&](const SweepStep& s) {
      return 10 * t.floor * report_.tolerance * report_.step / s.step;
    };
    if (bend > noise(*straight) &&
        bend > 1e-3 * std::max(std::fabs(straight->left), std::fabs(straight->right)) &&
        2 * bend >= straight->difference)
      return Trend::kink;
    return steady->difference <= noise(*steady) ? Trend::rounding : Trend::wrong;
  }

  /// Finds it by one random direction for all records at once, each alone, and proves it element by
  /// element.
  bool first_wrong_record() {
    for (const Index record : suspects()) {
      WrongRecord wrong = record_at(subject_, seen_, record);
      const auto& inputs = inputs_of(record);
      const Tensor<double> w = projection(seen_.value(record).shape());
      const auto own = gradients_of<T>(subject_, record, w);
      Kind best;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const bool again =
            std::find(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(i), inputs[i]) !=
            inputs.begin() + static_cast<std::ptrdiff_t>(i);
        if (inputs[i] < 0 || again) continue;
        const Index place = inputs[i];
        const auto run = [&](const Tensor<T>& x) {
          return alone(subject_, seen_, record, place, x);
        };
        const Compared c = compare(place, seen_.value(record), w, own[i], run);
        if (!c.wrong) continue;
        found_.inputs_affected.push_back(fmt::format(
            "{}: {}", wrong.inputs[i], describe_region(c.gradient.in, c.marks, options_.heads)));
        const Kind kind = kind_of(c.gradient);
        const bool first = wrong.input < 0;
        if (!first && says(kind.fault) <= says(best.fault)) continue;
        best = kind;
        wrong.input = static_cast<Index>(i);
        wrong.element = c.at;
        wrong.analytic = c.analytic;
        wrong.numeric = c.numeric;
        found_.outputs_affected = affected_outputs(record, place, w, c);
      }
      if (wrong.input < 0) continue;
      take(best);
      found_.record = std::move(wrong);
      return true;
    }
    return false;
  }

  /// How much a kind says of a record of which several inputs are wrong: a part missing from one
  /// input's sum is no reason why another is wrong; what is wrong with the result's gradient is.
  static int says(Fault fault) {
    if (fault == Fault::other) return 0;
    return fault == Fault::reduction || fault == Fault::accumulation ? 1 : 2;
  }

  void take(const Kind& kind) {
    found_.fault = kind.fault;
    found_.reason = kind.reason;
    found_.ratio = kind.ratio;
  }

  /// Records, in order, whose slope along a random direction is not what their backward says.
  std::vector<Index> suspects() {
    std::vector<Tensor<double>> directions;
    for (Index i = 0; i < count(); ++i) {
      Rng rng(options_.seed, static_cast<std::uint64_t>(i));
      const double size = step_for(seen_.value(i), 1.0);
      directions.push_back(normal_tensor<double>(seen_.value(i).shape(), size, rng));
    }
    constexpr int kSteps = 3;  // +-h, +-h/2, +-h/4
    const double h = report_.step;
    std::vector<std::vector<Tensor<T>>> results;
    for (int k = 0; k < kSteps; ++k)
      for (const double sign : {1.0, -1.0}) {
        Instead<T> moved;
        for (Index i = 0; i < count(); ++i)
          moved.push_back(
              along(seen_.value(i), sign * h / (1 << k), directions[static_cast<std::size_t>(i)]));
        results.push_back(each_alone(subject_, seen_, moved));
      }
    std::vector<Index> found;
    Tape<T> tape;
    const Var<T> y = subject_.forward(tape);
    for (Index record = 0; record < count(); ++record) {
      if (seen_.is_input(record)) continue;
      const Tensor<double> w = projection(seen_.value(record).shape());
      auto line = plain_line<T>([&](double s) {
        const int k = static_cast<int>(std::lround(std::log2(h / std::fabs(s))));
        return results[static_cast<std::size_t>(2 * k + (s < 0 ? 1 : 0))]
                      [static_cast<std::size_t>(record)];
      });
      const Slope numeric = slope(seen_.value(record), w.values(), h, line);
      const auto& inputs = inputs_of(record);
      const auto own = tape.pull(record, rounded<T>(w));
      double analytic = 0, norm = 0;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const auto before = inputs.begin() + static_cast<std::ptrdiff_t>(i);
        if (inputs[i] < 0 || own[i].empty() ||
            std::find(inputs.begin(), before, inputs[i]) != before)
          continue;
        const Tensor<double>& v = directions[static_cast<std::size_t>(inputs[i])];
        for (Index e = 0; e < v.size(); ++e) {
          const double term = static_cast<double>(own[i].data()[e]) * v.data()[e];
          analytic += term;
          norm += term * term;
        }
      }
      const double size = std::max({std::sqrt(norm), std::fabs(numeric.value), 1e-300});
      if (!(std::fabs(analytic - numeric.value) <= report_.tolerance * size))
        found.push_back(record);
    }
    return found;
  }

  /// One input of one function, compared element by element.
  struct Compared {
    LocalGradient gradient;
    std::vector<Mark> marks;  // by element
    bool wrong = false;
    Index at = 0;
    double analytic = 0, numeric = 0;
  };

  template <class Run>
  Compared compare(Index place, const Tensor<T>& y, const Tensor<double>& w,
                   const Tensor<T>& analytic, Run run) {
    const Tensor<T>& x = seen_.value(place);
    Compared c;
    c.gradient.in = x.shape();
    c.gradient.out = y.shape();
    c.gradient.w.assign(w.values().begin(), w.values().end());
    Index longest = y.shape().rows();  // places of the result that are left out in turn
    for (const Index size : y.shape().sizes()) longest = std::max(longest, size);
    const Index numbers = x.size() * y.size();
    const bool whole = numbers <= kJacobian && numbers * longest <= kWork;
    Rng rng(options_.seed);
    std::vector<Index> elements = rng.permutation(x.size());
    if (!whole) elements.resize(static_cast<std::size_t>(std::min(kElements, x.size())));
    std::sort(elements.begin(), elements.end());
    const auto n = static_cast<Index>(elements.size());
    c.gradient.numeric.resize(elements.size());
    std::vector<Slope> slopes(elements.size());
    if (whole) c.gradient.jacobian.resize(elements.size() * static_cast<std::size_t>(y.size()));
    const double h = step_for(x, report_.step);
    parallel_for(n, 8, [&](Index begin, Index end) {
      Tensor<T> moving = x;
      for (Index i = begin; i < end; ++i) {
        const auto at = static_cast<std::size_t>(i);
        ElementLine<T, Run> line(moving, elements[at], run);
        const std::span<double> each = whole ? std::span(c.gradient.jacobian)
                                                   .subspan(at * static_cast<std::size_t>(y.size()),
                                                            static_cast<std::size_t>(y.size()))
                                             : std::span<double>();
        slopes[at] = slope(y, w.values(), h, line, each);
      }
    });
    double size = 0;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const double a = analytic.empty() ? 0 : static_cast<double>(analytic.data()[elements[i]]);
      c.gradient.analytic.push_back(a);
      c.gradient.numeric[i] = slopes[i].value;
      size = std::max({size, std::isfinite(a) ? std::fabs(a) : 0, std::fabs(slopes[i].value)});
    }
    double scale = 0;
    for (Index o = 0; o < y.size(); ++o)
      scale += std::fabs(w.data()[o] * static_cast<double>(y.data()[o]));
    const double unit = Precision<T>::kUnit * scale / h;
    size = std::max(size, unit / report_.tolerance);
    c.marks.assign(static_cast<std::size_t>(x.size()), Mark::silent);
    double worst = 0;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const double a = c.gradient.analytic[i], s = slopes[i].value, gap = std::fabs(a - s);
      const double bend = std::fabs(slopes[i].left - slopes[i].right);
      if (bend > kKink * size) {  // near a kink: nothing is known
        c.gradient.numeric[i] = a;
        continue;
      }
      const bool wrong =
          !(gap <= std::max({report_.tolerance * size, kSlopeNoise * unit, slopes[i].doubt}));
      if (wrong)
        c.marks[static_cast<std::size_t>(elements[i])] = Mark::wrong;
      else if (std::max(std::fabs(a), std::fabs(s)) > 1e-6 * size)
        c.marks[static_cast<std::size_t>(elements[i])] = Mark::right;
      if (wrong && (!c.wrong || !(gap <= worst))) {
        worst = gap;
        c.at = elements[i];
        c.analytic = a;
        c.numeric = s;
      }
      c.wrong = c.wrong || wrong;
    }
    return c;
  }

  /// Which results send a wrong gradient: group by group, along each axis by itself.
  std::string affected_outputs(Index record, Index place, const Tensor<double>& w,
                               const Compared& c) {
    if (c.gradient.jacobian.empty() || c.gradient.out.size() < 2) return "";
    const Shape& out = c.gradient.out;
    std::vector<Mark> marks(static_cast<std::size_t>(out.size()), Mark::wrong);
    for (Index axis = 0; axis < out.rank(); ++axis) {
      if (out[axis] == 1) continue;
      if (out[axis] > kGroups) return "";
      Index stride = 1;
      for (Index i = axis + 1; i < out.rank(); ++i) stride *= out[i];
      for (Index k = 0; k < out[axis]; ++k) {
        Tensor<double> part = w;
        double* masked = part.data();
        for (Index o = 0; o < out.size(); ++o)
          if (o / stride % out[axis] != k) masked[o] = 0;
        if (!sends_wrong(record, place, part, c))
          for (Index o = 0; o < out.size(); ++o)
            if (o / stride % out[axis] == k) marks[static_cast<std::size_t>(o)] = Mark::right;
      }
    }
    return describe_region(out, marks, options_.heads);
  }

  bool sends_wrong(Index record, Index place, const Tensor<double>& w, const Compared& c) {
    const Tensor<T> a = among(gradients_of<T>(subject_, record, w), inputs_of(record), place);
    const std::size_t outputs = c.gradient.w.size();
    std::vector<double> n(c.gradient.numeric.size(), 0.0);
    double size = 0;
    for (std::size_t e = 0; e < n.size(); ++e) {
      for (std::size_t o = 0; o < outputs; ++o)
        n[e] += c.gradient.jacobian[e * outputs + o] * w.data()[o];
      size = std::max(size, std::fabs(n[e]));
    }
    size = std::max(size, a.empty() ? 0 : largest(a));
    for (std::size_t e = 0; e < n.size(); ++e) {
      const double got = a.empty() ? 0 : static_cast<double>(a.data()[e]);
      if (!(std::fabs(got - n[e]) <= 1e-5 * size)) return true;
    }
    return false;
  }

  /// No record is wrong by itself: the forward pass as one function.
  void classify_whole() {
    for (std::size_t i = 0; i < report_.tensors.size(); ++i) {
      const TensorCheck& t = report_.tensors[i];
      if (t.verdict != Verdict::fail || places_[i] < 0) continue;
      LocalGradient g;
      g.in = t.shape;
      g.out = seen_.y.shape();
      std::vector<Mark> marks(static_cast<std::size_t>(t.shape.size()), Mark::silent);
      const double size = std::max(largest(t.n), t.floor);
      for (Index e = 0; e < t.a.size(); ++e) {
        const double a = t.a.data()[e], n = t.n.data()[e];
        if (std::isnan(n) && std::isnan(a)) continue;  // not compared
        g.analytic.push_back(a);
        g.numeric.push_back(n);
        const bool wrong = !(std::fabs(a - n) <= report_.tolerance * size);
        marks[static_cast<std::size_t>(e)] = wrong ? Mark::wrong : Mark::right;
      }
      found_.inputs_affected.push_back(
          fmt::format("{}: {}", t.name, describe_region(t.shape, marks, options_.heads)));
      if (found_.reason.empty() || found_.fault == Fault::other) take(kind_of(g));
    }
  }

  /// A record that reads a value it does not list: the graph is cut there.
  bool unlisted_input() {
    for (Index place = 0; place < count(); ++place) {
      Rng rng(options_.seed, static_cast<std::uint64_t>(place));
      const Tensor<T>& x = seen_.value(place);
      Instead<T> instead(seen_.values.size());
      instead[static_cast<std::size_t>(place)] =
          along(x, report_.step, normal_tensor<double>(x.shape(), step_for(x, 1.0), rng));
      const auto results = each_alone(subject_, seen_, instead);
      for (Index record = place + 1; record < count(); ++record) {
        const auto& inputs = inputs_of(record);
        if (seen_.is_input(record) ||
            std::find(inputs.begin(), inputs.end(), place) != inputs.end())
          continue;
        const auto now = results[static_cast<std::size_t>(record)].values();
        if (std::equal(now.begin(), now.end(), seen_.value(record).values().begin())) continue;
        found_.fault = Fault::other;
        found_.record = record_at(subject_, seen_, record);
        found_.reason = fmt::format(
            "the graph is cut: record {} ({}) depends on {}, which is not among its inputs, so no "
            "gradient goes there",
            record, found_.record.op, name_at(subject_, seen_, place));
        return true;
      }
    }
    return false;
  }

  const Subject<T>& subject_;
  const Seen<T>& seen_;
  const GradReport& report_;
  const std::vector<Index>& places_;
  const GradOptions& options_;
  Diagnosis found_;
};

}  // namespace

template <Real T>
Diagnosis diagnose(const Subject<T>& subject, const Seen<T>& seen, const GradReport& report,
                   const std::vector<Index>& places, const GradOptions& options) {
  return Diagnostician<T>(subject, seen, report, places, options).run();
}

template Diagnosis diagnose(const Subject<float>&, const Seen<float>&, const GradReport&,
                            const std::vector<Index>&, const GradOptions&);
template Diagnosis diagnose(const Subject<double>&, const Seen<double>&, const GradReport&,
                            const std::vector<Index>&, const GradOptions&);

}  // namespace headwise
