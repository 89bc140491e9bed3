#include "autograd/suspects.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "autograd/judge.hpp"
#include "headwise/core/random.hpp"

namespace headwise {
namespace {

constexpr int kSteps = 3;  // +-h, +-h/2, +-h/4

template <Real T>
class Search {
 public:
  Search(const Subject<T>& subject, const Seen<T>& seen, const GradReport& report,
         std::uint64_t seed)
      : subject_(subject), seen_(seen), tolerance_(report.tolerance) {
    for (Index i = 0; i < count(); ++i) {
      Rng rng(seed, static_cast<std::uint64_t>(i));
      const double size = step_for(seen_.value(i), 1.0);
      directions_.push_back(normal_tensor<double>(seen_.value(i).shape(), size, rng));
    }
    // Smaller steps for records that have no slope with larger ones.
    double h = report.step;
    slopes_.resize(static_cast<std::size_t>(count()));
    for (int k = 0; k <= kSmallerSteps && !all_known(); ++k, h /= 10) measure(h);
  }

  std::vector<Suspect> run() {
    std::vector<Suspect> found;
    Tape<T> tape;
    const Var<T> y = subject_.forward(tape);
    for (Index record = 0; record < count(); ++record) {
      if (seen_.is_input(record)) continue;
      const Ruling ruling = rule(record, tape);
      if (ruling != Ruling::right) found.push_back({record, ruling == Ruling::wrong});
    }
    return found;
  }

 private:
  [[nodiscard]] Index count() const { return static_cast<Index>(seen_.values.size()); }

  bool all_known() const {
    for (Index record = 0; record < count(); ++record)
      if (!seen_.is_input(record) && !known(record)) return false;
    return true;
  }
  [[nodiscard]] bool known(Index record) const {
    const auto& s = slopes_[static_cast<std::size_t>(record)];
    return s && s->first.known();
  }

  /// Of every record that has none, the slope with step h, and that step.
  void measure(double h) {
    std::vector<std::vector<Tensor<T>>> results;
    try {
      for (int k = 0; k < kSteps; ++k)
        for (const double sign : {1.0, -1.0}) {
          Instead<T> moved;
          for (Index i = 0; i < count(); ++i)
            moved.push_back(along(seen_.value(i), sign * h / (1 << k),
                                  directions_[static_cast<std::size_t>(i)]));
          results.push_back(each_alone(subject_, seen_, moved));
        }
    } catch (...) {  // some op does not take that step
      return;
    }
    for (Index record = 0; record < count(); ++record) {
      if (seen_.is_input(record) || known(record)) continue;
      const auto at = static_cast<std::size_t>(record);
      auto line = plain_line<T>([&](double s) {
        const int k = static_cast<int>(std::lround(std::log2(h / std::fabs(s))));
        return results[static_cast<std::size_t>(2 * k + (s < 0 ? 1 : 0))][at];
      });
      const Tensor<double> w = projection(seen_.value(record).shape());
      slopes_[at] = {slope(seen_.value(record), w.values(), h, line), h};
    }
  }

  Ruling rule(Index record, Tape<T>& tape) const {
    const Tensor<T>& y = seen_.value(record);
    const Tensor<double> w = projection(y.shape());
    const auto& inputs = seen_.entries[static_cast<std::size_t>(record)].inputs;
    const auto own = tape.pull(record, rounded<T>(w));
    double analytic = 0, norm = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto before = inputs.begin() + static_cast<std::ptrdiff_t>(i);
      if (inputs[i] < 0 || own[i].empty() || std::find(inputs.begin(), before, inputs[i]) != before)
        continue;
      const Tensor<double>& v = directions_[static_cast<std::size_t>(inputs[i])];
      for (Index e = 0; e < v.size(); ++e) {
        const double term = static_cast<double>(own[i].data()[e]) * v.data()[e];
        analytic += term;
        norm += term * term;
      }
    }
    if (!known(record)) return Ruling::no_slope;
    const auto& [s, h] = *slopes_[static_cast<std::size_t>(record)];
    // A suspect is asked again, so what might be rounding is one, too.
    const double size = std::max({std::sqrt(norm), std::fabs(s.value), 1e-300});
    if (std::fabs(analytic - s.value) <= tolerance_ * size) return Ruling::right;
    Judge judge(tolerance_, 0, floor_of(y, w, h, tolerance_), 0);
    const Slope all[] = {s};
    judge.hear({}, all, std::isfinite(norm) ? std::sqrt(norm) : 0);
    const Ruling ruling = judge.rule(analytic, s, [](double) { return true; });
    return ruling == Ruling::right ? Ruling::rounding : ruling;
  }

  const Subject<T>& subject_;
  const Seen<T>& seen_;
  double tolerance_;
  std::vector<Tensor<double>> directions_;
  std::vector<std::optional<std::pair<Slope, double>>> slopes_;
};

}  // namespace

template <Real T>
std::vector<Suspect> suspects(const Subject<T>& subject, const Seen<T>& seen,
                              const GradReport& report, std::uint64_t seed) {
  return Search<T>(subject, seen, report, seed).run();
}

template std::vector<Suspect> suspects(const Subject<float>&, const Seen<float>&, const GradReport&,
                                       std::uint64_t);
template std::vector<Suspect> suspects(const Subject<double>&, const Seen<double>&,
                                       const GradReport&, std::uint64_t);

}  // namespace headwise
