#include "autograd/fault.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "autograd/axes.hpp"

namespace headwise {
namespace {

constexpr double kNear = 1e-5;   // of the largest gradient: what a prediction may be off
constexpr double kApart = 1e-4;  // by how much it has to differ from the right gradient
constexpr double kTold = 1e-3;   // an element of this size says something

double size_of(const Values& x) {
  double most = 0;
  for (const double v : x) most = std::max(most, std::fabs(v));
  return most;
}

/// The whole number (2 to 512) that x is, or 0.
Index whole(double x) {
  const double near = std::round(x);
  return near >= 2 && near <= 512 && std::fabs(x - near) <= 1e-5 * near ? static_cast<Index>(near)
                                                                        : 0;
}

/// "a factor 2 too much", "a missing factor sqrt(8)", or the number itself.
std::string in_words(double ratio) {
  const double r = std::fabs(ratio);
  const std::string sign = ratio < 0 ? "the wrong sign and " : "";
  if (const Index k = whole(r)) return fmt::format("{}a factor {} too much", sign, k);
  if (const Index k = whole(1 / r)) return fmt::format("{}a missing factor {}", sign, k);
  if (const Index k = whole(r * r)) return fmt::format("{}a factor sqrt({}) too much", sign, k);
  if (const Index k = whole(1 / (r * r)))
    return fmt::format("{}a missing factor sqrt({})", sign, k);
  if (std::fabs(r - 1) <= 1e-5) return "the wrong sign";
  return fmt::format("{}a factor of {:.6g}", sign, r);
}

class Classifier {
 public:
  explicit Classifier(const LocalGradient& g)
      : g_(g), a_(g.analytic), n_(g.numeric), size_(std::max(size_of(a_), size_of(n_))) {}

  Kind run() {
    for (const double v : a_)
      if (!std::isfinite(v)) return other("the backward gives numbers that are not finite");
    for (const double v : n_)
      if (!std::isfinite(v)) return other("the result is not finite near the point of the check");
    if (size_of(a_) == 0) return other("no gradient arrives where there should be one");
    using Test = std::optional<Kind> (Classifier::*)();
    for (const Test test : {&Classifier::constant_ratio, &Classifier::transposed,
                            &Classifier::partial_sum, &Classifier::one_row, &Classifier::moved_rows,
                            &Classifier::ratio_of_a_part, &Classifier::single_ratio})
      if (const auto kind = (this->*test)()) return *kind;
    return other("no simple mistake explains the numbers");
  }

 private:
  static Kind other(std::string reason) { return {Fault::other, std::move(reason), 0}; }

  [[nodiscard]] bool near(double x, double y) const { return std::fabs(x - y) <= kNear * size_; }
  [[nodiscard]] bool says_something(double x) const { return std::fabs(x) > kTold * size_; }

  /// Whether a prediction is what came, and not what is right.
  [[nodiscard]] bool explains(const Values& prediction) const {
    bool apart = false;
    for (std::size_t e = 0; e < a_.size(); ++e) {
      if (!near(prediction[e], a_[e])) return false;
      apart = apart || std::fabs(prediction[e] - n_[e]) > kApart * size_;
    }
    return apart;
  }

  static Kind of_ratio(double ratio, const std::string& where) {
    return {std::fabs(ratio + 1) <= 1e-5 ? Fault::sign : Fault::factor,
            fmt::format("analytic / numeric is {:.6g} {}: looks like {}", ratio, where,
                        in_words(ratio)),
            ratio};
  }

  /// The ratio of those elements that are picked, if it is one for all and at least two tell.
  template <class Pick>
  [[nodiscard]] std::optional<double> ratio_of(Pick pick) const {
    double an = 0, nn = 0;
    Index told = 0;
    for (std::size_t e = 0; e < a_.size(); ++e) {
      if (!pick(e)) continue;
      an += a_[e] * n_[e];
      nn += n_[e] * n_[e];
      told += says_something(n_[e]);
    }
    if (told < 2 || nn == 0) return std::nullopt;
    const double ratio = an / nn;
    if (std::fabs(ratio) < 1e-6 || std::fabs(ratio - 1) < 1e-8) return std::nullopt;
    const double allowed = std::min(kNear, 1e-2 * std::fabs(ratio - 1)) * size_;
    for (std::size_t e = 0; e < a_.size(); ++e)
      if (pick(e) && std::fabs(a_[e] - ratio * n_[e]) > allowed) return std::nullopt;
    return ratio;
  }

  std::optional<Kind> constant_ratio() {
    const auto ratio = ratio_of([](std::size_t) { return true; });
    if (!ratio) return std::nullopt;
    return of_ratio(*ratio, "throughout");
  }

  /// Of the elements that are wrong, while others are right.
  std::optional<Kind> ratio_of_a_part() {
    const auto ratio = ratio_of([&](std::size_t e) { return !near(a_[e], n_[e]); });
    if (!ratio) return std::nullopt;
    return of_ratio(*ratio, "wherever it is wrong");
  }

  /// Of the only element that says something: there any mistake is a factor, so it has to be a
  /// simple one.
  std::optional<Kind> single_ratio() {
    std::optional<double> ratio;
    for (std::size_t e = 0; e < a_.size(); ++e) {
      if (near(a_[e], n_[e])) continue;
      if (ratio || !says_something(n_[e])) return std::nullopt;
      ratio = a_[e] / n_[e];
    }
    if (!ratio || (std::fabs(*ratio + 1) > 1e-5 && whole(std::fabs(*ratio)) == 0 &&
                   whole(1 / std::fabs(*ratio)) == 0))
      return std::nullopt;
    return of_ratio(*ratio, "at the only element that is wrong");
  }

  std::optional<Kind> transposed() {
    const auto kind = [](const std::string& what) { return Kind{Fault::transposition, what, 0}; };
    if (static_cast<Index>(a_.size()) == g_.in.size())
      for (const auto& order : orders(g_.in.rank()))
        if (explains(permuted(n_, g_.in, order)))
          return kind(fmt::format("the right gradient with its axes in the order ({})",
                                  fmt::join(order, ",")));
    if (g_.jacobian.empty()) return std::nullopt;
    for (const auto& order : orders(g_.out.rank()))
      if (explains(g_.of_weights(permuted(g_.w, g_.out, order))))
        return kind(
            fmt::format("right for a gradient of the result whose axes are in the order ({})",
                        fmt::join(order, ",")));
    if (static_cast<Index>(a_.size()) != g_.in.size()) return std::nullopt;
    if (g_.in == g_.out)
      for (const auto& order : orders(g_.in.rank()))
        if (explains(permuted(g_.of_weights(permuted(g_.w, g_.out, order)), g_.in, order)))
          return kind(
              "looks like operands that are transposed where they should not be, or the "
              "other way round");
    for (Index p = 0; p < g_.out.rank(); ++p)
      for (Index q = 0; q < g_.in.rank(); ++q)
        if (g_.out[p] == g_.in[q] && g_.out[p] > 1 && explains(g_.exchanged(p, q)))
          return kind(
              "looks like an operand that is transposed where it should not be, or the "
              "other way round");
    return std::nullopt;
  }

  /// Whether only what these results contribute arrived, and they are not all that an element has.
  [[nodiscard]] bool only(const Part& part) const {
    if (!explains(g_.of_part(part))) return false;
    Index kept = 0, lost_too = 0;
    for (std::size_t e = 0; e < a_.size(); ++e) {
      double in = 0, out = 0;
      for (std::size_t o = 0; o < part.size(); ++o)
        (part[o] ? in : out) += std::fabs(g_.row(e)[o] * g_.w[o]);
      kept += says_something(in);
      lost_too += says_something(in) && says_something(out);
    }
    return kept > 0 && 2 * lost_too >= kept;
  }

  std::optional<Kind> partial_sum() {
    if (g_.jacobian.empty()) return std::nullopt;
    const Index rank = g_.out.rank();
    for (Index set = 1; set < (Index{1} << rank); ++set) {
      std::vector<Index> axes;
      for (Index axis = 0; axis < rank; ++axis)
        if ((set >> axis & 1) != 0) axes.push_back(axis);
      const Index places =
          axes.size() == 1 ? g_.out[axes[0]] : 2;  // any, or the first and the last
      for (Index k = 0; k < places; ++k) {
        Part part(g_.w.size());
        for (std::size_t o = 0; o < part.size(); ++o)
          part[o] = std::all_of(axes.begin(), axes.end(), [&](Index axis) {
            const Index wanted = axes.size() == 1 ? k : k == 0 ? 0 : g_.out[axis] - 1;
            return index_along(g_.out, axis, static_cast<Index>(o)) == wanted;
          });
        if (!only(part)) continue;
        if (std::all_of(axes.begin(), axes.end(),
                        [&](Index axis) { return g_.broadcast_along(axis); }))
          return Kind{
              Fault::reduction,
              fmt::format("only one place along axis {} of the result arrives: the input was "
                          "broadcast there, and its gradient is the sum",
                          fmt::join(axes, " and ")),
              0};
        return Kind{Fault::accumulation,
                    fmt::format("only one place along axis {} of the result arrives: contributions "
                                "replace each other instead of adding up",
                                fmt::join(axes, " and ")),
                    0};
      }
    }
    if (const auto kind = rows_up_to()) return kind;
    return one_contribution();
  }

  /// Only the first rows of the result arrive, or only the last.
  std::optional<Kind> rows_up_to() {
    const Index rows = g_.out.rows(), each = g_.out.last();
    for (Index k = 1; k < rows; ++k)
      for (const bool first : {true, false}) {
        Part part(g_.w.size());
        for (std::size_t o = 0; o < part.size(); ++o)
          part[o] = (static_cast<Index>(o) / each < k) == first;
        // All but one row is a row that was forgotten, see one_row().
        if ((first ? rows - k : k) > 1 && only(part))
          return Kind{
              Fault::accumulation,
              fmt::format("only rows {} to {} of the result's {} arrive: the sums of blocks "
                          "replace each other instead of adding up",
                          first ? 0 : k, first ? k - 1 : rows - 1, rows),
              0};
      }
    return std::nullopt;
  }

  /// Of the several results that an element contributes to, one arrives, whichever.
  std::optional<Kind> one_contribution() {
    Index wrong = 0;
    for (std::size_t e = 0; e < a_.size(); ++e) {
      Index several = 0;
      bool found = false;
      for (std::size_t o = 0; o < g_.w.size(); ++o) {
        const double part = g_.row(e)[o] * g_.w[o];
        if (!says_something(part)) continue;
        ++several;
        found = found || near(a_[e], part);
      }
      if (several > 1 && !found) return std::nullopt;  // also where all arrived: it is not the rule
      if (near(a_[e], n_[e])) continue;
      ++wrong;
      if (several < 2) return std::nullopt;
    }
    if (wrong == 0) return std::nullopt;
    return Kind{
        Fault::accumulation,
        "of several contributions to an element one arrives: they replace each other instead "
        "of adding up",
        0};
  }

  std::optional<Kind> one_row() {
    if (static_cast<Index>(a_.size()) != g_.in.size()) return std::nullopt;
    const bool line = g_.in.rank() < 2;
    const Index rows = line ? g_.in.size() : g_.in.rows(), each = line ? 1 : g_.in.last();
    Index wrong = -1, count = 0;
    bool others = false;
    for (Index r = 0; r < rows; ++r) {
      bool bad = false, told = false;
      for (Index i = r * each; i < (r + 1) * each; ++i) {
        const auto e = static_cast<std::size_t>(i);
        bad = bad || !near(a_[e], n_[e]);
        told = told || says_something(n_[e]);
      }
      if (bad) wrong = r, ++count;
      others = others || (!bad && told);
    }
    if (count == 1 && others)
      return Kind{Fault::row,
                  fmt::format("only {} {} of {} is wrong", line ? "element" : "row", wrong, rows),
                  0};
    if (g_.jacobian.empty()) return std::nullopt;
    // One row of the result, or one place along another axis, that sends nothing.
    for (Index axis = 0; axis < g_.out.rank(); ++axis)
      for (Index k = 0; g_.out[axis] > 1 && k < g_.out[axis]; ++k)
        if (lost([&](Index o) { return index_along(g_.out, axis, o) == k; }))
          return Kind{
              Fault::row,
              fmt::format("place {} along axis {} of the result sends no gradient", k, axis), 0};
    for (Index r = 0; g_.out.rows() > 1 && r < g_.out.rows(); ++r)
      if (lost([&](Index o) { return o / g_.out.last() == r; }))
        return Kind{Fault::row,
                    fmt::format("row {} of the result's {} sends no gradient", r, g_.out.rows()),
                    0};
    return std::nullopt;
  }

  template <class Which>
  [[nodiscard]] bool lost(Which which) const {
    Part part(g_.w.size());
    for (std::size_t o = 0; o < part.size(); ++o) part[o] = !which(static_cast<Index>(o));
    return explains(g_.of_part(part));
  }

  std::optional<Kind> moved_rows() {
    // Along one axis, or over all rows as those of one matrix.
    const auto moved = [&](const Values& x, const Shape& shape, const char* of,
                           auto gradient) -> std::optional<Kind> {
      const auto told = [&](const std::string& where) {
        return Kind{Fault::row, fmt::format("everything is off by one {} of the {}", where, of), 0};
      };
      for (const bool around : {true, false})
        for (const Index by : {1, -1}) {
          for (Index axis = 0; axis < shape.rank(); ++axis)
            if (shape[axis] > 1 && explains(gradient(shifted(x, shape, axis, by, around))))
              return told(fmt::format("along axis {}", axis));
          if (shape.rank() > 2 &&
              explains(gradient(shifted(x, {shape.rows(), shape.last()}, 0, by, around))))
            return told("over all rows");
        }
      return std::nullopt;
    };
    if (static_cast<Index>(a_.size()) == g_.in.size())
      if (const auto kind = moved(n_, g_.in, "gradient", [](Values x) { return x; })) return kind;
    if (g_.jacobian.empty()) return std::nullopt;
    return moved(g_.w, g_.out, "result's gradient",
                 [&](const Values& w) { return g_.of_weights(w); });
  }

  const LocalGradient& g_;
  const Values &a_, &n_;
  double size_;
};

}  // namespace

Kind kind_of(const LocalGradient& g) { return Classifier(g).run(); }

}  // namespace headwise
