// The mistakes that can be made in any op's backward, a family a function: each lists those that
// make sense for a call, and the kind they have to be reported as.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "support/faults.hpp"

namespace headwise::test {

using Mistakes = std::vector<Mistake>;

/// The gradient of one input goes through `spoil`.
template <class F>
Mistake spoilt(std::size_t input, const std::string& how, Fault kind, F spoil) {
  return {fmt::format("input {}: {}", input, how), kind,
          [=](const Call& call, const Tensor<double>& dy) {
            Gradients d = call.right(dy);
            d[input] = spoil(d[input]);
            return d;
          }};
}

/// The result's gradient goes through `spoil` before anything else.
template <class F>
Mistake spoilt_dy(const std::string& how, Fault kind, F spoil) {
  return {"dy: " + how, kind,
          [=](const Call& call, const Tensor<double>& dy) { return call.right(spoil(dy)); }};
}

/// The same, but for one input alone.
template <class F>
Mistake spoilt_dy_of(std::size_t input, const std::string& how, Fault kind, F spoil) {
  return {fmt::format("dy of input {}: {}", input, how), kind,
          [=](const Call& call, const Tensor<double>& dy) {
            Gradients d = call.right(dy);
            d[input] = std::move(call.right(spoil(dy))[input]);
            return d;
          }};
}

inline Mistakes factors(const Call& call) {
  Mistakes all;
  const auto by = [](double factor) {
    return [=](const Tensor<double>& x) { return times(x, factor); };
  };
  for (std::size_t i = 0; i < call.x.size(); ++i)
    all.push_back(spoilt(i, "times 2", Fault::factor, by(2)));
  all.push_back(spoilt_dy("times 0.5", Fault::factor, by(0.5)));
  const double n = static_cast<double>(call.x[0].size());
  if (n > 1) {
    all.push_back(spoilt_dy("times 1/N", Fault::factor, by(1 / n)));
    all.push_back(spoilt(0, "times sqrt(N)", Fault::factor, by(std::sqrt(n))));
  }
  return all;
}

inline Mistakes signs(const Call& call) {
  Mistakes all;
  const auto minus = [](const Tensor<double>& x) { return times(x, -1); };
  for (std::size_t i = 0; i < call.x.size(); ++i)
    all.push_back(spoilt(i, "times -1", Fault::sign, minus));
  if (call.x.size() > 1) all.push_back(spoilt_dy("times -1", Fault::sign, minus));
  return all;
}

inline Mistakes transpositions(const Call& call) {
  const auto is_matrix = [](const Shape& s) { return s.rank() >= 2 && s[-2] > 1 && s[-1] > 1; };
  Mistakes all;
  for (std::size_t i = 0; i < call.x.size(); ++i)
    if (is_matrix(call.x[i].shape()))
      all.push_back(spoilt(i, "transposed", Fault::transposition, transposed));
  if (is_matrix(call.y.shape()))
    all.push_back(spoilt_dy("transposed", Fault::transposition, transposed));
  return all;
}

/// The axes of a result along which an input of a named op is repeated.
inline std::vector<Index> repeated(const std::string& op, std::size_t input, const Call& call) {
  const Shape &in = call.x[input].shape(), &out = call.y.shape();
  const auto one_of = [&](std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names)
      if (op == name) return true;
    return false;
  };
  const bool elements = one_of({"add", "sub", "mul", "div", "where"}), matrices = op == "matmul",
             bias = one_of({"linear", "gelu_linear"}) && input == 2,
             norm = one_of({"layer_norm", "rms_norm"}) && input > 0;
  std::vector<Index> axes;
  if (!elements && !matrices && !bias && !norm) return axes;
  for (Index axis = 0; axis < out.rank() - (matrices ? 2 : 0); ++axis) {
    const Index own = axis - out.rank() + in.rank();
    if (out[axis] > 1 && (own < 0 || in[own] == 1)) axes.push_back(axis);
  }
  return axes;
}

/// One slice of what should be summed over the axes along which an input was repeated.
inline Mistakes reductions(const std::string& op, const Call& call) {
  Mistakes all;
  for (std::size_t i = 0; i < call.x.size(); ++i) {
    const std::vector<Index> axes = repeated(op, i, call);
    std::vector<std::vector<Index>> sets;
    for (const Index axis : axes) sets.push_back({axis});
    if (axes.size() > 1) sets.push_back(axes);
    for (const std::vector<Index>& set : sets)
      for (const bool last : {false, true})
        all.push_back(spoilt_dy_of(
            i, fmt::format("only the {} along ({})", last ? "last" : "first", fmt::join(set, ",")),
            Fault::reduction, [=](const Tensor<double>& dy) { return slice_of(dy, set, last); }));
  }
  return all;
}

/// A gradient that replaces what was there, and, where an op adds up contributions itself, the last
/// of them in the place of the sum.
inline Mistakes accumulations(const std::string& op, const Call& call) {
  Mistakes all;
  for (std::size_t i = 0; i < call.x.size(); ++i) {
    Mistake assigned = no_mistake();
    assigned.name = fmt::format("input {}: assigned", i);
    assigned.kind = Fault::accumulation;
    assigned.assigns = static_cast<Index>(i);
    all.push_back(assigned);
  }
  const auto last_of = [&](std::size_t input, const std::vector<Index>& axes) {
    all.push_back(spoilt_dy_of(input, fmt::format("the last along ({})", fmt::join(axes, ",")),
                               Fault::accumulation,
                               [=](const Tensor<double>& dy) { return slice_of(dy, axes, true); }));
  };
  const Index rank = call.y.shape().rank();
  if ((op == "linear" || op == "gelu_linear") && rank > 1) last_of(1, {rank - 2});
  if ((op == "linear" || op == "gelu_linear") && rank > 2) last_of(1, {rank - 3, rank - 2});
  if (op == "matmul" && call.x.size() == 2) last_of(0, {rank - 1}), last_of(1, {rank - 2});
  if (op == "attention") last_of(1, {1}), last_of(2, {1});
  return all;
}

inline Mistakes rows(const Call& call) {
  Mistakes all;
  const auto zero_row = [](const Tensor<double>& x, Index row) {
    const Index width = Rows(x.shape()).width;
    return changed(x, [=](Index i, double v) { return i / width == row ? 0 : v; });
  };
  const auto without_last = [=](const Tensor<double>& x) { return zero_row(x, last_row(x)); };
  const auto wrong_last = [](const Tensor<double>& x) {
    const Index width = Rows(x.shape()).width, row = last_row(x);
    return changed(x, [=](Index i, double v) {
      return i / width == row ? v * static_cast<double>(2 + i % width) : v;
    });
  };
  const auto lost = [=](const Tensor<double>& dy) {
    return zero_row(dy, Rows(dy.shape()).count - 1);
  };
  const auto moved = [](Index by, bool around) {  // over all rows
    return [=](const Tensor<double>& x) { return shifted(x, by, around, Rows(x.shape()).count); };
  };
  const auto moved_within = [](const Tensor<double>& x) {  // each matrix
    return shifted(x, -1, false, x.shape()[-2]);
  };
  for (std::size_t i = 0; i < call.x.size(); ++i) {
    const Shape& in = call.x[i].shape();
    if (Rows(in).count < 2) continue;
    all.push_back(spoilt(i, "last row zero", Fault::row, without_last));
    all.push_back(spoilt(i, "last row wrong", Fault::row, wrong_last));
    all.push_back(spoilt(i, "rows one further", Fault::row, moved(1, false)));
    all.push_back(spoilt(i, "rows around by one", Fault::row, moved(-1, true)));
    if (in.rank() > 2 && in[-2] > 1)
      all.push_back(spoilt(i, "rows one back along axis -2", Fault::row, moved_within));
  }
  const Shape& out = call.y.shape();
  if (Rows(out).count < 2) return all;
  all.push_back(spoilt_dy("last row lost", Fault::row, lost));
  all.push_back(spoilt_dy("rows one further", Fault::row, moved(1, false)));
  if (out.rank() > 2 && out[-2] > 1)
    all.push_back(spoilt_dy("rows one back along axis -2", Fault::row, moved_within));
  return all;
}

/// An input that gets no gradient.
inline Mistakes missing(const Call& call) {
  Mistakes all;
  for (std::size_t i = 0; i < call.x.size(); ++i)
    all.push_back(spoilt(i, "no gradient", Fault::other,
                         [](const Tensor<double>&) { return Tensor<double>(); }));
  return all;
}

inline Mistakes general_mistakes(const std::string& op, const Call& call) {
  Mistakes all;
  for (Mistakes family : {factors(call), signs(call), transpositions(call), reductions(op, call),
                          accumulations(op, call), rows(call), missing(call)})
    for (Mistake& m : family) all.push_back(std::move(m));
  return all;
}

}  // namespace headwise::test
