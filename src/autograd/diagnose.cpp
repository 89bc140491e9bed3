#include "autograd/diagnose.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "autograd/axes.hpp"
#include "autograd/local.hpp"
#include "autograd/slope.hpp"
#include "autograd/suspects.hpp"
#include "autograd/sweep.hpp"
#include "autograd/thrown.hpp"
#include "headwise/core/random.hpp"

namespace headwise {
namespace {

/// Groups of results whose gradients are looked at.
constexpr Index kGroups = 48;

template <Real T>
class Diagnostician {
 public:
  Diagnostician(const Subject<T>& subject, const Seen<T>& seen, const GradReport& report,
                const std::vector<Index>& places, const GradOptions& options, const Budget& budget)
      : subject_(subject),
        seen_(seen),
        report_(report),
        places_(places),
        options_(options),
        budget_(budget) {}

  Diagnosis run() {
    const TensorCheck* worst = nullptr;
    std::size_t at = 0;
    for (std::size_t i = 0; i < report_.tensors.size(); ++i) {
      const TensorCheck& t = report_.tensors[i];
      if (t.verdict == Verdict::fail && (worst == nullptr || !(t.worst <= worst->worst)))
        worst = &t, at = i;
    }
    if (worst == nullptr || places_[at] < 0) return std::move(found_);
    sweep(subject_, seen_, *worst, places_[at], report_.tolerance, found_);
    if (seen_.place < 0) {
      found_.fault = Fault::other;
      found_.reason = "the result was not recorded: to the tape it is a constant";
      return std::move(found_);
    }
    try {
      if (!first_wrong_record() && !unlisted_input()) classify_whole();
    } catch (...) {  // a forward pass that is not one function near this point
      found_.fault = Fault::other;
      found_.reason = thrown();
    }
    return std::move(found_);
  }

 private:
  [[nodiscard]] Index count() const { return static_cast<Index>(seen_.values.size()); }
  [[nodiscard]] const std::vector<Index>& inputs_of(Index record) const {
    return seen_.entries[static_cast<std::size_t>(record)].inputs;
  }

  /// Finds it by one random direction for all records at once, each alone, and proves it element by
  /// element. Where too many elements are left to look at, a direction is proof enough.
  bool first_wrong_record() {
    std::optional<WrongRecord> seen_along;
    std::string how;
    for (const auto& [record, sure] : suspects(subject_, seen_, report_, options_.seed)) {
      const auto [looked_at, all] = prove(record);
      if (found_.record.number >= 0) return true;
      if (!sure || looked_at == all || seen_along) continue;
      seen_along = record_at(subject_, seen_, record);
      how = fmt::format(
          "record {} ({}) is wrong along a random direction, but at none of {} elements of its "
          "inputs' {}",
          record, seen_along->op, looked_at, all);
    }
    if (!seen_along) return false;
    found_.fault = Fault::other;
    found_.reason = how;
    found_.record = std::move(*seen_along);
    return true;
  }

  /// Takes a record that is wrong at an element. Returns how many elements of its inputs were
  /// looked at, and how many there are.
  std::pair<Index, Index> prove(Index record) {
    WrongRecord wrong = record_at(subject_, seen_, record);
    const auto& inputs = inputs_of(record);
    const Tensor<double> w = projection(seen_.value(record).shape());
    const auto own = gradients_of<T>(subject_, record, w);
    Index looked_at = 0, all = 0;
    Kind best;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto before = inputs.begin() + static_cast<std::ptrdiff_t>(i);
      if (inputs[i] < 0 || std::find(inputs.begin(), before, inputs[i]) != before) continue;
      const LocalCheck c = check_alone(subject_, seen_, record, inputs[i], own[i], report_,
                                       options_.seed, budget_.elements_left());
      looked_at += c.looked_at;
      all += c.gradient.in.size();
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
      found_.outputs_affected = affected_outputs(record, inputs[i], w, c.gradient);
    }
    if (wrong.input < 0) return {looked_at, all};
    take(best);
    found_.record = std::move(wrong);
    return {looked_at, all};
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

  /// Which results send a wrong gradient: group by group, along each axis by itself.
  std::string affected_outputs(Index record, Index place, const Tensor<double>& w,
                               const LocalGradient& g) {
    if (g.jacobian.empty() || g.out.size() < 2) return "";
    const Shape& out = g.out;
    std::vector<Mark> marks(static_cast<std::size_t>(out.size()), Mark::wrong);
    for (Index axis = 0; axis < out.rank(); ++axis) {
      if (out[axis] == 1) continue;
      if (out[axis] > std::min(kGroups, budget_.elements_left())) return "";
      for (Index k = 0; k < out[axis]; ++k) {
        Tensor<double> part = w;
        double* masked = part.data();
        for (Index o = 0; o < out.size(); ++o)
          if (index_along(out, axis, o) != k) masked[o] = 0;
        if (!sends_wrong(record, place, part, g))
          for (Index o = 0; o < out.size(); ++o)
            if (index_along(out, axis, o) == k) marks[static_cast<std::size_t>(o)] = Mark::right;
      }
    }
    return describe_region(out, marks, options_.heads);
  }

  bool sends_wrong(Index record, Index place, const Tensor<double>& w, const LocalGradient& g) {
    const Tensor<T> a = among(gradients_of<T>(subject_, record, w), inputs_of(record), place);
    const std::size_t outputs = g.w.size();
    std::vector<double> n(g.numeric.size(), 0.0);
    double size = 0;
    for (std::size_t e = 0; e < n.size(); ++e) {
      for (std::size_t o = 0; o < outputs; ++o) n[e] += g.jacobian[e * outputs + o] * w.data()[o];
      if (std::isfinite(n[e])) size = std::max(size, std::fabs(n[e]));
    }
    size = std::max(size, a.empty() ? 0 : largest(a));
    for (std::size_t e = 0; e < n.size(); ++e) {
      const double got = a.empty() ? 0 : static_cast<double>(a.data()[e]);
      if (std::isfinite(n[e]) && !(std::fabs(got - n[e]) <= 1e-5 * size)) return true;
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
      double size = t.floor;  // what is not finite is what was not compared, or wrong
      for (const Tensor<double>* side : {&t.a, &t.n})
        for (const double x : side->values())
          if (std::isfinite(x)) size = std::max(size, std::fabs(x));
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
    for (Index place = 0; place < count() && !budget_.over(1); ++place) {
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
  const Budget& budget_;
  Diagnosis found_;
};

}  // namespace

template <Real T>
Diagnosis diagnose(const Subject<T>& subject, const Seen<T>& seen, const GradReport& report,
                   const std::vector<Index>& places, const GradOptions& options,
                   const Budget& budget) {
  return Diagnostician<T>(subject, seen, report, places, options, budget).run();
}

template Diagnosis diagnose(const Subject<float>&, const Seen<float>&, const GradReport&,
                            const std::vector<Index>&, const GradOptions&, const Budget&);
template Diagnosis diagnose(const Subject<double>&, const Seen<double>&, const GradReport&,
                            const std::vector<Index>&, const GradOptions&, const Budget&);

}  // namespace headwise
