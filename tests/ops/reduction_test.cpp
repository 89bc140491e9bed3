// Sums, means and maxima over chosen axes.
#include <cmath>
#include <limits>

#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

/// The axes of bits set in `which`.
std::vector<Index> axes_in(unsigned which) {
  std::vector<Index> axes;
  for (Index i = 0; i < 4; ++i)
    if ((which >> i & 1U) != 0) axes.push_back(i);
  return axes;
}

Shape kept_shape(const Shape& x, const std::vector<Index>& axes) {
  std::vector<Index> sizes(x.sizes().begin(), x.sizes().end());
  for (const Index a : axes) sizes[static_cast<std::size_t>(a)] = 1;
  return Shape(std::span<const Index>(sizes));
}

/// Where in the reduced tensor element i of x belongs.
Index place(Index i, const Shape& x, const Shape& kept) {
  Index at = 0, stride = 1;
  for (Index axis = 1; axis <= x.rank(); ++axis) {
    if (kept[-axis] != 1) at += stride * (i % x[-axis]);
    stride *= kept[-axis];
    i /= x[-axis];
  }
  return at;
}

const Shape kShape{2, 3, 1, 5};

}  // namespace

TEST_CASE("sum and mean over any axes equal plain loops", "[ops][reduction]") {
  const Tensor<double> x = random_tensor<double>(kShape, 1);
  for (unsigned which = 1; which < 16; ++which) {
    const std::vector<Index> axes = axes_in(which);
    const Shape kept = kept_shape(kShape, axes);
    const Tensor<double> dy = random_tensor<double>(kept, 2);
    Tensor<double> total = Tensor<double>::zeros(kept), dx = x;
    for (Index i = 0; i < x.size(); ++i) {
      total.data()[place(i, kShape, kept)] += x.data()[i];
      dx.data()[i] = dy.data()[place(i, kShape, kept)];
    }
    CAPTURE(which);
    const Pass<double> sums =
        pass<double>([&](const auto& v) { return sum(v[0], axes, true); }, {x}, dy);
    CHECK(relative_gap(sums.y, total) < 1e-15);
    CHECK(same_bits(sums.d[0], dx));

    const double n = static_cast<double>(kShape.size() / kept.size());
    for (double *v = dx.data(), *end = v + dx.size(); v != end; ++v) *v /= n;
    for (double *v = total.data(), *end = v + total.size(); v != end; ++v) *v /= n;
    const Pass<double> means =
        pass<double>([&](const auto& v) { return mean(v[0], axes, true); }, {x}, dy);
    CHECK(relative_gap(means.y, total) < 1e-15);
    CHECK(same_bits(means.d[0], dx));
  }
}

TEST_CASE("max over any axes equals plain loops, with its gradient at the first maximum",
          "[ops][reduction]") {
  Tensor<double> x = random_tensor<double>(kShape, 1);
  for (double *v = x.data(), *end = v + x.size(); v != end; ++v) *v = std::round(*v);  // many equal
  for (unsigned which = 1; which < 16; ++which) {
    const std::vector<Index> axes = axes_in(which);
    const Shape kept = kept_shape(kShape, axes);
    const Tensor<double> dy = random_tensor<double>(kept, 2);
    Tensor<double> most = Tensor<double>::full(kept, -100), dx = Tensor<double>::zeros(kShape);
    std::vector<Index> first(static_cast<std::size_t>(kept.size()));
    for (Index i = 0; i < x.size(); ++i) {
      const Index to = place(i, kShape, kept);
      if (std::as_const(x).data()[i] <= most.data()[to]) continue;
      most.data()[to] = std::as_const(x).data()[i];
      first[static_cast<std::size_t>(to)] = i;
    }
    for (std::size_t i = 0; i < first.size(); ++i) dx.data()[first[i]] = dy.values()[i];
    CAPTURE(which);
    const Pass<double> found =
        pass<double>([&](const auto& v) { return max(v[0], axes, true); }, {x}, dy);
    CHECK(same_bits(found.y, most));
    CHECK(same_bits(found.d[0], dx));
  }
}

TEST_CASE("axes reduced are dropped unless kept, and count from the end", "[ops][reduction]") {
  const Var<double> x = random_tensor<double>(kShape, 1);
  CHECK(sum(x).shape() == Shape{});
  CHECK(sum(x, {}, true).shape() == Shape{1, 1, 1, 1});
  CHECK(sum(x, {1}).shape() == Shape{2, 1, 5});
  CHECK(mean(x, {-1, 0}).shape() == Shape{3, 1});
  CHECK(max(x, {-1, 0}, true).shape() == Shape{1, 3, 1, 1});
  CHECK(same_bits(sum(x, {-4, -1}).value(), sum(x, {3, 0}).value()));
  CHECK(sum(Var<double>(Tensor<double>({}, {3}))).item() == 3);
}

TEST_CASE("sums are taken in double, whatever the axis", "[ops][reduction]") {
  const Var<float> x = Tensor<float>({3}, {1e8F, 1, -1e8F});
  CHECK(sum(x).item() == 1);
  CHECK(sum(reshape(x, {3, 1}), {0}).item() == 1);
  CHECK(sum(reshape(x, {1, 3}), {1}).item() == 1);
}

TEMPLATE_TEST_CASE("a NaN is the maximum of what it is among", "[ops][reduction]", float, double) {
  using T = TestType;
  const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  const Tensor<T> x({4, 3}, {1, nan, 3, nan, 1, 2, 1, 2, nan, -inf, -inf, -inf});
  const Pass<T> found =
      pass<T>([](const auto& v) { return max(v[0], {1}); }, {x}, Tensor<T>::full({4}, 1));
  CHECK(same_bits(found.y, Tensor<T>({4}, {nan, nan, nan, -inf})));
  CHECK(same_bits(found.d[0], Tensor<T>({4, 3}, {0, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0})));
}

TEST_CASE("reductions name an axis that is wrong", "[ops][reduction][errors]") {
  const Var<float> x = Tensor<float>::zeros({2, 3}), none = Tensor<float>::zeros({2, 0});
  CHECK_THROWS_WITH(sum(x, {2}), "sum: (2,3) has no axis 2");
  CHECK_THROWS_WITH(mean(x, {0, -3}), "mean: (2,3) has no axis -3");
  CHECK_THROWS_WITH(max(x, {1, -1}), "max: axis -1 of (2,3) is named twice");
  CHECK_THROWS_WITH(max(none), "max: (2,0) has no elements");
  CHECK_THROWS_WITH(mean(none, {1}), "mean: (2,0) has no elements");
  CHECK_THROWS_AS(sum(x, {2}), ShapeError);
  CHECK(same_bits(sum(none, {1}).value(), Tensor<float>::zeros({2})));
  CHECK(max(none, {0}).shape() == Shape{0});
  CHECK(mean(none, {0}).shape() == Shape{0});
}
