// The mistakes people make in one op's backward and no other, written as the right gradient of
// another function: what somebody forgot to depend on x is a constant there.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/fault_families.hpp"

namespace headwise::test {

inline Value number(double x) { return Value(Tensor<double>({}, {x})); }

/// x as a constant.
inline Value fixed(const Value& x) { return Value(x.value()); }

/// The value of one with the gradient of the other.
inline Value with_gradient_of(const Value& value, const Value& g) {
  return add(g, sub(fixed(value), fixed(g)));
}

inline Mistake like(std::string name, Fault kind, Op g) {
  return {std::move(name), kind, [g = std::move(g)](const Call& call, const Tensor<double>& dy) {
            return call.of(g, dy);
          }};
}

/// x without its derivative's factor: dy goes through as it is.
inline Value through(const Vars& x) { return mul(x[0], number(1)); }

/// dx = y dy.
inline Op y_dy(const Op& f) {
  return [f](const Vars& x) { return mul(x[0], fixed(f({fixed(x[0])}))); };
}

/// Of y = x h(x), without the derivative of h.
inline Op as_product(const Op& f) {
  return [f](const Vars& x) { return mul(x[0], div(f({fixed(x[0])}), fixed(x[0]))); };
}

inline Mistakes pow_mistakes(const Op& f, const std::string& label) {
  const double p = std::stod(label);
  return {like("without the exponent", Fault::factor,
               [p](const Vars& x) { return mul(x[0], pow(fixed(x[0]), p - 1)); }),
          like("y instead of y / x, and no exponent", Fault::other, y_dy(f))};
}

inline Mistakes mul_mistakes(const Op&, const std::string& label) {
  if (label != "same shape") return {};
  return {like("a's gradient takes a for b", Fault::other,
               [](const Vars& x) { return add(mul(x[0], fixed(x[0])), mul(fixed(x[0]), x[1])); })};
}

inline Mistakes div_mistakes(const Op&, const std::string&) {
  return {like("b's gradient divided by b once", Fault::other,
               [](const Vars& x) {
                 const Value y = div(fixed(x[0]), fixed(x[1]));
                 return sub(div(x[0], fixed(x[1])), mul(x[1], y));
               }),
          like("a's gradient times b", Fault::other,
               [](const Vars& x) { return add(mul(x[0], fixed(x[1])), div(fixed(x[0]), x[1])); })};
}

/// The axes that the cases of sum, mean and max are named after.
template <class Reduce>
Op over_axes_of(const std::string& label, Reduce reduce) {
  const std::map<std::string, std::vector<Index>> axes = {{"matrix", {}},
                                                          {"last axis", {-1}},
                                                          {"outer axes, kept", {1, 0}},
                                                          {"every other axis", {0, 2}}};
  return [=, of = axes.at(label), keep = label == "outer axes, kept"](const Vars& x) {
    return reduce(x[0], of, keep);
  };
}
inline Op sum_of(const std::string& label) {
  return over_axes_of(label, [](auto&... x) { return sum(x...); });
}
inline Op mean_of(const std::string& label) {
  return over_axes_of(label, [](auto&... x) { return mean(x...); });
}

inline Mistakes matmul_mistakes(const Op&, const std::string& label) {
  const auto t = [](const Value& x) { return transpose(fixed(x)); };
  if (label == "square operands")
    return {
        like("b not transposed in a's gradient", Fault::transposition,
             [t](const Vars& x) { return add(matmul(x[0], t(x[1])), matmul(fixed(x[0]), x[1])); }),
        like("a not transposed in b's gradient", Fault::transposition,
             [t](const Vars& x) { return add(matmul(x[0], fixed(x[1])), matmul(t(x[0]), x[1])); })};
  if (label != "square of one matrix" && label != "squares of a batch") return {};
  return {
      like("one factor not transposed", Fault::transposition,
           [t](const Vars& x) { return add(matmul(x[0], t(x[0])), matmul(fixed(x[0]), x[0])); }),
      like("neither factor transposed", Fault::transposition,
           [t](const Vars& x) { return add(matmul(x[0], t(x[0])), matmul(t(x[0]), x[0])); })};
}

inline Mistakes permute_mistakes(const Op& f, const std::string&) {
  return {like("not put back", Fault::transposition, [f](const Vars& x) {
    const Shape shape = f({fixed(x[0])}).shape();
    return reshape(x[0], {shape.sizes().begin(), shape.sizes().end()});
  })};
}

inline Mistakes slice_mistakes(const Op&, const std::string& label) {
  const auto off_by_one = [](Index axis, Index begin, Index end) {
    return Mistakes{like("begins one place beside", Fault::row,
                         [=](const Vars& x) { return slice(x[0], axis, begin, end); })};
  };
  if (label == "first axis") return off_by_one(0, 0, 2);
  if (label == "middle axis") return off_by_one(1, 1, 3);
  return off_by_one(-1, 2, 3);
}

inline Mistakes concat_mistakes(const Op&, const std::string& label) {
  if (label == "a stack")
    return {like("the two exchanged", Fault::other, [](const Vars& x) {
      return concat(Vars{x[1], x[0]}, 1);
    })};
  if (label == "one with itself")
    return {like("the last of two places", Fault::accumulation, [](const Vars& x) {
      return concat(Vars{fixed(x[0]), x[0]}, 1);
    })};
  return {};
}

inline Mistakes where_mistakes(const Op& f, const std::string& label) {
  if (label == "one variable") return {};
  return {
      like("both taken everywhere", Fault::other, [](const Vars& x) { return add(x[0], x[1]); }),
      like("condition the wrong way round", Fault::other,
           [f](const Vars& x) { return sub(add(x[0], x[1]), f(x)); })};
}

inline Mistakes embedding_mistakes(const Op&, const std::string&) {
  return {like("the last of repeated ids", Fault::accumulation, [](const Vars& x) {
    const Value table = x[0];  // ids 0 2 2 4 2 0: of the rows 3, 4 and 5 each stands for its id
    return reshape(concat(Vars{embedding(fixed(table), Ids({3}, {0, 2, 2})),
                               embedding(table, Ids({3}, {4, 2, 0}))},
                          0),
                   {2, 3, 3});
  })};
}

}  // namespace headwise::test
