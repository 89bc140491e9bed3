#include "headwise/ops/mask.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "headwise/core/error.hpp"

namespace headwise {
namespace {

constexpr double kBlocked = -std::numeric_limits<double>::infinity();

/// Element i of a shape, as its place in it: "(1,0,2)".
std::string place(const Shape& shape, Index i) {
  std::vector<Index> at(static_cast<std::size_t>(shape.rank()));
  for (Index axis = shape.rank() - 1; axis >= 0; i /= shape[axis--])
    at[static_cast<std::size_t>(axis)] = i % shape[axis];
  return fmt::format("({})", fmt::join(at, ","));
}

/// The one that there is, or f of both.
template <class X, class F>
X merged(const X& a, const X& b, F f) {
  return !a ? b : !b ? a : X(f(*a, *b));
}

Index smaller(Index a, Index b) { return std::min(a, b); }

std::shared_ptr<const std::vector<Index>> shorter(const std::vector<Index>& a,
                                                  const std::vector<Index>& b) {
  require(a.size() == b.size(), "mask: lengths of {} sequences and of {} do not fit together",
          a.size(), b.size());
  auto both = std::make_shared<std::vector<Index>>(a);
  for (std::size_t i = 0; i < b.size(); ++i) (*both)[i] = std::min(a[i], b[i]);
  return both;
}

std::shared_ptr<const Mask::Table> both_allow(const Mask::Table& a, const Mask::Table& b) {
  require(a.queries == b.queries && a.keys == b.keys,
          "mask: {} queries and {} keys do not fit together with {} queries and {} keys", a.queries,
          a.keys, b.queries, b.keys);
  auto both = std::make_shared<Mask::Table>(a);
  for (std::size_t i = 0; i < b.allowed.size(); ++i) both->allowed[i] &= b.allowed[i];
  return both;
}

/// a + b, of which the smaller is repeated along the leading axes that it has not.
Tensor<double> sum_of_biases(const Tensor<double>& a, const Tensor<double>& b) {
  if (a.shape().rank() < b.shape().rank()) return sum_of_biases(b, a);
  const auto large = a.shape().sizes(), small = b.shape().sizes();
  require(std::equal(small.begin(), small.end(), large.end() - b.shape().rank()),
          "mask: biases {} and {} do not fit together", a.shape(), b.shape());
  Tensor<double> sum = a;
  double* out = sum.data();
  for (Index i = 0; i < sum.size(); ++i) out[i] += b.data()[i % b.size()];
  return bias(std::move(sum)).bias;  // checked again: the sum may be out of range
}

}  // namespace

Mask causal() {
  Mask mask;
  mask.causal = true;
  return mask;
}

Mask causal(Index offset) {
  require(offset >= 0, "mask: causal offset {} is negative", offset);
  Mask mask;
  mask.offset = offset;
  return mask;
}

Mask everything() { return {}; }

Mask keys_below(std::vector<Index> lengths) {
  Mask mask;
  mask.lengths = std::make_shared<const std::vector<Index>>(std::move(lengths));
  return mask;
}

Mask allow(Index queries, Index keys, FunctionRef<bool(Index query, Index key)> may_look) {
  require(queries >= 0 && keys >= 0, "mask: {} queries and {} keys", queries, keys);
  auto table = std::make_shared<Mask::Table>(Mask::Table{queries, keys, {}});
  table->allowed.reserve(static_cast<std::size_t>(queries * keys));
  for (Index t = 0; t < queries; ++t)
    for (Index s = 0; s < keys; ++s) table->allowed.push_back(may_look(t, s) ? 1 : 0);
  Mask mask;
  mask.table = std::move(table);
  return mask;
}

Mask block(Index queries, Index keys, FunctionRef<bool(Index query, Index key)> must_not_look) {
  return allow(queries, keys, [&](Index t, Index s) { return !must_not_look(t, s); });
}

Mask bias(Tensor<double> table) {
  const Shape& shape = table.shape();
  require(shape.rank() >= 2 && shape.rank() <= 4,
          "mask: bias {} is not (T,S), (H,T,S) or (B,H,T,S)", shape);
  const double* x = std::as_const(table).data();
  for (Index i = 0; i < table.size(); ++i)
    require(std::fabs(x[i]) <= std::numeric_limits<float>::max() || x[i] == kBlocked,
            "mask: bias {} at {} is neither -inf nor in the range of float", x[i], place(shape, i));
  Mask mask;
  mask.bias = std::move(table);
  return mask;
}

Mask operator&(const Mask& a, const Mask& b) {
  Mask both;
  both.causal = a.causal || b.causal;
  both.offset = merged(a.offset, b.offset, smaller);
  both.lengths = merged(a.lengths, b.lengths, shorter);
  both.table = merged(a.table, b.table, both_allow);
  both.bias = a.bias.empty() ? b.bias : b.bias.empty() ? a.bias : sum_of_biases(a.bias, b.bias);
  return both;
}

}  // namespace headwise
