#include "autograd/fault.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "autograd/axes.hpp"

namespace headwise {
namespace {

using Values = std::vector<double>;

constexpr double kNear = 1e-5;   // of the largest gradient: what a prediction may be off
constexpr double kApart = 1e-4;  // by how much it has to differ from the right gradient
constexpr double kTold = 1e-3;   // an element of this size says something

double size_of(const Values& x) {
  double most = 0;
  for (const double v : x) most = std::max(most, std::fabs(v));
  return most;
}

/// Every order of the axes but the one that is.
std::vector<std::vector<Index>> orders(Index rank) {
  std::vector<std::vector<Index>> all;
  if (rank < 2 || rank > 4) return all;
  std::vector<Index> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  while (std::next_permutation(order.begin(), order.end())) all.push_back(order);
  return all;
}

/// x with its axes in another order, flat: what a reader finds who takes it for one of the old
/// shape.
Values permuted(const Values& x, const Shape& shape, const std::vector<Index>& order) {
  Values y(x.size());
  std::vector<Index> sizes, strides;
  for (const Index axis : order) {
    sizes.push_back(shape[axis]);
    strides.push_back(stride_of(shape, axis));
  }
  for (std::size_t i = 0; i < y.size(); ++i) {
    auto rest = static_cast<Index>(i);
    Index from = 0;
    for (std::size_t axis = sizes.size(); axis-- > 0; rest /= sizes[axis])
      from += rest % sizes[axis] * strides[axis];
    y[i] = x[static_cast<std::size_t>(from)];
  }
  return y;
}

/// x moved by one along an axis: around, or with zeros coming in.
Values shifted(const Values& x, const Shape& shape, Index axis, Index by, bool around) {
  const Index stride = stride_of(shape, axis), size = shape[axis];
  Values y(x.size(), 0.0);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto e = static_cast<Index>(i);
    const Index at = index_along(shape, axis, e), from = at - by;
    if (!around && (from < 0 || from >= size)) continue;
    y[i] = x[static_cast<std::size_t>(e + ((from + size) % size - at) * stride)];
  }
  return y;
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
  [[nodiscard]] Index outputs() const { return static_cast<Index>(g_.w.size()); }
  [[nodiscard]] const double* row(std::size_t e) const {
    return g_.jacobian.data() + e * g_.w.size();
  }

  /// Whether a prediction is what came, and not what is right.
  [[nodiscard]] bool explains(const Values& prediction) const {
    bool apart = false;
    for (std::size_t e = 0; e < a_.size(); ++e) {
      if (!near(prediction[e], a_[e])) return false;
      apart = apart || std::fabs(prediction[e] - n_[e]) > kApart * size_;
    }
    return apart;
  }

  /// The gradient of sum(w y) for other weights.
  [[nodiscard]] Values gradient_for(const Values& w) const {
    Values sum(a_.size(), 0.0);
    for (std::size_t e = 0; e < sum.size(); ++e)
      for (std::size_t o = 0; o < w.size(); ++o) sum[e] += row(e)[o] * w[o];
    return sum;
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
      if (explains(gradient_for(permuted(g_.w, g_.out, order))))
        return kind(
            fmt::format("right for a gradient of the result whose axes are in the order ({})",
                        fmt::join(order, ",")));
    if (static_cast<Index>(a_.size()) != g_.in.size()) return std::nullopt;
    if (g_.in == g_.out)
      for (const auto& order : orders(g_.in.rank()))
        if (explains(permuted(gradient_for(permuted(g_.w, g_.out, order)), g_.in, order)))
          return kind(
              "looks like operands that are transposed where they should not be, or the "
              "other way round");
    for (Index p = 0; p < g_.out.rank(); ++p)
      for (Index q = 0; q < g_.in.rank(); ++q)
        if (g_.out[p] == g_.in[q] && g_.out[p] > 1 && explains(exchanged(p, q)))
          return kind(
              "looks like an operand that is transposed where it should not be, or the "
              "other way round");
    return std::nullopt;
  }

  /// The gradient if dy/dx had the index of y's axis p and that of x's axis q exchanged.
  [[nodiscard]] Values exchanged(Index p, Index q) const {
    const Index out_stride = stride_of(g_.out, p), in_stride = stride_of(g_.in, q);
    Values sum(a_.size(), 0.0);
    for (Index e = 0; e < g_.in.size(); ++e)
      for (Index o = 0; o < outputs(); ++o) {
        const Index of_y = index_along(g_.out, p, o), of_x = index_along(g_.in, q, e);
        const Index e2 = e + (of_y - of_x) * in_stride, o2 = o + (of_x - of_y) * out_stride;
        sum[static_cast<std::size_t>(e)] +=
            row(static_cast<std::size_t>(e2))[o2] * g_.w[static_cast<std::size_t>(o)];
      }
    return sum;
  }

  /// Some results, by whether they are in.
  using Part = std::vector<bool>;

  [[nodiscard]] Values weights_of(const Part& part) const {
    Values w = g_.w;
    for (std::size_t o = 0; o < w.size(); ++o)
      if (!part[o]) w[o] = 0;
    return w;
  }

  /// Whether only what these results contribute arrived, and they are not all that an element has.
  [[nodiscard]] bool only(const Part& part) const {
    if (!explains(gradient_for(weights_of(part)))) return false;
    Index kept = 0, lost_too = 0;
    for (std::size_t e = 0; e < a_.size(); ++e) {
      double in = 0, out = 0;
      for (std::size_t o = 0; o < part.size(); ++o)
        (part[o] ? in : out) += std::fabs(row(e)[o] * g_.w[o]);
      kept += says_something(in);
      lost_too += says_something(in) && says_something(out);
    }
    return kept > 0 && 2 * lost_too >= kept;
  }

  /// Whether x was repeated along an axis of y: broadcast as a whole, or batch by batch of
  /// matrices.
  [[nodiscard]] bool broadcast_along(Index axis) const {
    const Index from_end = axis - g_.out.rank();  // -1: the last
    if (g_.in.rank() >= -from_end && g_.in[from_end] != 1) return false;
    bool fits = g_.in.rank() <= g_.out.rank();
    for (Index i = -1; fits && i >= -g_.in.rank(); --i)
      fits = g_.in[i] == 1 || g_.in[i] == g_.out[i];
    return fits || (from_end < -2 && reaches_all_along(axis));
  }

  /// Whether an element of x that reaches one place along an axis of y reaches the others too.
  [[nodiscard]] bool reaches_all_along(Index axis) const {
    const Index stride = stride_of(g_.out, axis);
    for (std::size_t e = 0; e < a_.size(); ++e)
      for (Index o = 0; o < outputs(); ++o)
        if (const Index k = index_along(g_.out, axis, o);
            (row(e)[o] != 0) != (row(e)[o - k * stride] != 0))
          return false;
    return true;
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
                        [&](Index axis) { return broadcast_along(axis); }))
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
        const double part = row(e)[o] * g_.w[o];
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
    return explains(gradient_for(weights_of(part)));
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
                 [&](const Values& w) { return gradient_for(w); });
  }

  const LocalGradient& g_;
  const Values &a_, &n_;
  double size_;
};

}  // namespace

Kind kind_of(const LocalGradient& g) { return Classifier(g).run(); }

}  // namespace headwise
