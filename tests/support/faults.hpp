// Ops with a mistake planted in their backward, to see who notices. Nothing in the library changes:
// the op runs on a tape of its own, and what the outer tape records under its name goes wrong.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "headwise/autograd/gradcheck.hpp"
#include "headwise/ops/ops.hpp"

namespace headwise::test {

/// One an input; an empty one: nothing is sent to it.
using Gradients = std::vector<Tensor<double>>;
using Value = Var<double>;
using Vars = std::vector<Value>;
using Op = Function<double>;

/// One call of an op: what its backward can know.
struct Call {
  Op op;
  std::vector<Tensor<double>> x;
  Tensor<double> y;

  Call(Op f, std::vector<Tensor<double>> inputs)
      : op(std::move(f)), x(std::move(inputs)), y(op(Vars(x.begin(), x.end())).value()) {}

  /// The gradients of another function of the same inputs, or of the op itself.
  [[nodiscard]] Gradients of(const Op& f, const Tensor<double>& dy) const {
    Tape<double> tape;
    Vars leaves;
    for (const Tensor<double>& input : x) leaves.push_back(tape.leaf(input));
    tape.backward(f(leaves), dy);
    Gradients d;
    for (const Value& leaf : leaves) d.push_back(tape.grad(leaf));
    return d;
  }
  [[nodiscard]] Gradients right(const Tensor<double>& dy) const { return of(op, dy); }
};

/// A mistake in a backward, and the kind under which it has to be reported.
struct Mistake {
  std::string name;  ///< "input 1: times 2"
  Fault kind;
  std::function<Gradients(const Call&, const Tensor<double>& dy)> backward;
  Index assigns = -1;  ///< the input whose gradient replaces what was there
};

/// No mistake.
inline Mistake no_mistake() {
  return {"none", Fault::none, [](const Call& call, const auto& dy) { return call.right(dy); }};
}

/// f, recorded as one op of that name whose backward makes a mistake.
inline Op faulty(std::string op, Op f, Mistake mistake) {
  return [=](const Vars& x) {
    std::vector<Tensor<double>> values;
    for (const Value& input : x) values.push_back(input.value());
    const Call call(f, std::move(values));
    return record(op, call.y, x, [call, mistake](const Tensor<double>& dy, Grads<double>& d) {
      const Gradients g = mistake.backward(call, dy);
      for (std::size_t i = 0; i < g.size(); ++i) {
        const auto input = static_cast<Index>(i);
        if (g[i].empty() || !d.wants(input)) continue;
        if (input == mistake.assigns)
          *d[input] = g[i];
        else
          d.add(input, g[i]);
      }
    });
  };
}

/// x with f(element, value) in the place of each value.
template <class F>
Tensor<double> changed(const Tensor<double>& x, F f) {
  Tensor<double> y = Tensor<double>::uninitialized(x.shape());
  double* out = y.data();
  for (Index i = 0; i < x.size(); ++i) out[i] = f(i, x.data()[i]);
  return y;
}

inline Tensor<double> times(const Tensor<double>& x, double factor) {
  return changed(x, [=](Index, double v) { return factor * v; });
}

/// The last two axes exchanged, under the old shape.
inline Tensor<double> transposed(const Tensor<double>& x) {
  return transpose(Value(x)).value().reshape(x.shape());
}

/// The index along an axis of an element.
inline Index along(const Shape& shape, Index axis, Index element) {
  for (Index i = shape.rank() - 1; i > axis; --i) element /= shape[i];
  return element % shape[axis];
}

/// Zero but for one slice along each of some axes: the first, or the last.
inline Tensor<double> slice_of(const Tensor<double>& x, const std::vector<Index>& axes, bool last) {
  return changed(x, [&](Index i, double v) {
    for (const Index axis : axes)
      if (along(x.shape(), axis, i) != (last ? x.shape()[axis] - 1 : 0)) return 0.0;
    return v;
  });
}

/// A tensor as rows: those of a matrix, or the elements of a vector.
struct Rows {
  Index count, width;
  explicit Rows(const Shape& s)
      : count(s.rank() < 2 ? s.size() : s.rows()), width(s.rank() < 2 ? 1 : s.last()) {}
};

/// The last row that is not zero; 0 when all are.
inline Index last_row(const Tensor<double>& x) {
  for (Index i = x.size(); i-- > 0;)
    if (x.data()[i] != 0) return i / Rows(x.shape()).width;
  return 0;
}

/// Row r moved to r + by, within each block of rows; what falls out at one end of a block comes in
/// at the other, or zeros do.
inline Tensor<double> shifted(const Tensor<double>& x, Index by, bool around, Index block) {
  const Index width = Rows(x.shape()).width;
  return changed(x, [&](Index i, double) {
    const Index row = i / width, from = row % block - by;
    if (!around && (from < 0 || from >= block)) return 0.0;
    return x.data()[(row - row % block + (from + block) % block) * width + i % width];
  });
}

}  // namespace headwise::test
