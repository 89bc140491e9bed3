// Ops that only move elements: each is compared with where the elements ought to be.
#include <algorithm>
#include <numeric>

#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

/// 0, 1, 2, ...
Tensor<double> counted_up(const Shape& shape) {
  Tensor<double> x = Tensor<double>::zeros(shape);
  std::iota(x.data(), x.data() + x.size(), 0.0);
  return x;
}

/// Where each element went says where its gradient must come from: x counts up, so y holds the
/// places in x.
void check_moves(const Function<double>& f, const Shape& shape, const std::vector<double>& places,
                 const Shape& result) {
  const Tensor<double> dy = random_tensor<double>(result, 1);
  const Pass<double> found = pass<double>(f, {counted_up(shape)}, dy);
  CHECK(same_bits(found.y, Tensor<double>(result, places)));
  Tensor<double> dx = Tensor<double>::zeros(shape);
  for (std::size_t i = 0; i < places.size(); ++i)
    dx.data()[static_cast<Index>(places[i])] += dy.values()[i];
  CHECK(same_bits(found.d[0], dx));
}

Var<float> of(const Shape& shape) { return Tensor<float>::zeros(shape); }

}  // namespace

TEST_CASE("permute puts every element where its indices say", "[ops][shapes]") {
  const std::vector<Index> sizes = {2, 3, 1, 5};
  const Shape shape{2, 3, 1, 5};
  std::vector<Index> order = {0, 1, 2, 3};
  do {
    CAPTURE(order);
    std::vector<Index> to;
    for (const Index axis : order) to.push_back(shape[axis]);
    const Shape result{std::span<const Index>(to)};
    std::vector<double> places;
    for (Index i = 0; i < result.size(); ++i) {
      Index index[4], rest = i;  // of element i of the result, by axes of x
      for (std::size_t k = 4; k-- > 0; rest /= to[k]) index[order[k]] = rest % to[k];
      places.push_back(
          static_cast<double>(((index[0] * 3 + index[1]) * 1 + index[2]) * 5 + index[3]));
    }
    check_moves([&](const auto& v) { return permute(v[0], order); }, shape, places, result);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("transpose exchanges the last two axes, or others", "[ops][shapes]") {
  const Var<double> x = counted_up({2, 2, 3});
  CHECK(same_bits(transpose(x).value(),
                  Tensor<double>({2, 3, 2}, {0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11})));
  CHECK(same_bits(transpose(x, 0, 1).value(),
                  Tensor<double>({2, 2, 3}, {0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11})));
  CHECK(transpose(x, -1, 0).shape() == Shape{3, 2, 2});
  CHECK(transpose(Var<double>(Tensor<double>::zeros({0, 3}))).shape() == Shape{3, 0});
}

TEST_CASE("reshape keeps the elements and finds the size left open", "[ops][shapes]") {
  const Tensor<double> x = counted_up({2, 6});
  CHECK(same_bits(reshape(Var<double>(x), {3, -1, 2}).value(), x.reshape({3, 2, 2})));
  CHECK(reshape(Var<double>(x), {-1}).shape() == Shape{12});
  CHECK(reshape(Var<double>(x), {12, -1}).shape() == Shape{12, 1});
  CHECK(reshape(of({0, 3}), {-1, 3}).shape() == Shape{0, 3});
  CHECK(reshape(of({1}), {}).shape() == Shape{});
  CHECK(reshape(Var<double>(x), {3, 4}).value().shares(x));
}

TEST_CASE("slice takes what is between begin and end", "[ops][shapes]") {
  check_moves([](const auto& v) { return slice(v[0], 1, 1, 3); }, {2, 3, 2},
              {2, 3, 4, 5, 8, 9, 10, 11}, {2, 2, 2});
  check_moves([](const auto& v) { return slice(v[0], -1, 2, 3); }, {2, 3}, {2, 5}, {2, 1});
  check_moves([](const auto& v) { return slice(v[0], 0, 0, 2); }, {2, 3}, {0, 1, 2, 3, 4, 5},
              {2, 3});
  check_moves([](const auto& v) { return slice(v[0], 0, 1, 1); }, {2, 3}, {}, {0, 3});
}

TEST_CASE("concat and stack put tensors side by side, and part their gradients", "[ops][shapes]") {
  const Tensor<double> a({2, 1}, {1, 2}), b({2, 2}, {3, 4, 5, 6});
  const Pass<double> wide =
      pass<double>([](const auto& v) { return concat(v, -1); }, {a, b}, counted_up({2, 3}));
  CHECK(same_bits(wide.y, Tensor<double>({2, 3}, {1, 3, 4, 2, 5, 6})));
  CHECK(same_bits(wide.d[0], Tensor<double>({2, 1}, {0, 3})));
  CHECK(same_bits(wide.d[1], Tensor<double>({2, 2}, {1, 2, 4, 5})));
  CHECK(concat<double>({a, Tensor<double>::zeros({2, 0})}, 1).shape() == Shape{2, 1});

  const Tensor<double> c({2}, {1, 2}), d({2}, {3, 4});
  const Pass<double> rows =
      pass<double>([](const auto& v) { return stack(v, 0); }, {c, d}, counted_up({2, 2}));
  CHECK(same_bits(rows.y, Tensor<double>({2, 2}, {1, 2, 3, 4})));
  CHECK(same_bits(rows.d[1], Tensor<double>({2}, {2, 3})));
  const Pass<double> columns =
      pass<double>([](const auto& v) { return stack(v, -1); }, {c, d}, counted_up({2, 2}));
  CHECK(same_bits(columns.y, Tensor<double>({2, 2}, {1, 3, 2, 4})));
  CHECK(same_bits(columns.d[1], Tensor<double>({2}, {1, 3})));
}

TEST_CASE("heads are columns of the width, and come back", "[ops][shapes]") {
  const Function<double> split = [](const auto& v) { return split_heads(v[0], 2); };
  check_moves(split, {1, 2, 6}, {0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11}, {1, 2, 2, 3});
  const Tensor<double> x = random_tensor<double>({3, 5, 8}, 1);
  CHECK(same_bits(concat_heads(split_heads(Var<double>(x), 4)).value(), x));
}

TEST_CASE("ops on shapes name what does not fit", "[ops][shapes][errors]") {
  const Var<float> x = of({2, 3});
  CHECK_THROWS_WITH(permute(x, {0}), "permute: (0) are not all axes of (2,3)");
  CHECK_THROWS_WITH(permute(x, {0, 0}), "permute: axis 0 of (2,3) is named twice");
  CHECK_THROWS_WITH(transpose(of({2})), "transpose: (2) has no axis -2");
  CHECK_THROWS_WITH(reshape(x, {4, -1}), "reshape: no size fits the -1 of (4,-1) and (2,3)");
  CHECK_THROWS_WITH(reshape(x, {-1, -1}), "reshape: (-1,-1) has more than one -1");
  CHECK_THROWS_WITH(reshape(of({0}), {0, -1}), "reshape: no size fits the -1 of (0,-1) and (0)");
  CHECK_THROWS_WITH(reshape(x, {5}), "reshape: 6 elements of (2,3) do not fill (5)");
  CHECK_THROWS_WITH(reshape(x, {-2, -3}), "shape: size -2 of axis 0 is negative");
  CHECK_THROWS_WITH(slice(x, 1, 1, 4), "slice: [1, 4) is not within axis 1 of (2,3)");
  CHECK_THROWS_WITH(slice(x, -1, 2, 1), "slice: [2, 1) is not within axis -1 of (2,3)");
  CHECK_THROWS_WITH(slice(x, 0, -1, 1), "slice: [-1, 1) is not within axis 0 of (2,3)");
  CHECK_THROWS_WITH(slice(x, 2, 0, 1), "slice: (2,3) has no axis 2");
  CHECK_THROWS_WITH(concat<float>({}, 0), "concat: there is no input");
  CHECK_THROWS_WITH(concat<float>({x, of({2, 4})}, 0),
                    "concat: (2,3) and (2,4) differ not only in axis 0");
  CHECK_THROWS_WITH(concat<float>({x, of({2})}, 0),
                    "concat: (2,3) and (2) differ not only in axis 0");
  CHECK_THROWS_WITH(stack<float>({x, of({3, 2})}, 0),
                    "stack: (2,3) and (3,2) are not of one shape");
  CHECK_THROWS_WITH(stack<float>({x}, 3), "stack: tensors (2,3) cannot be stacked along an axis 3");
  CHECK_THROWS_WITH(split_heads(of({1, 2, 10}), 3),
                    "split_heads: (1,2,10) is not (B,T,C) with C a multiple of 3 heads");
  CHECK_THROWS_AS(split_heads(of({1, 2, 10}), 0), ShapeError);
  CHECK_THROWS_WITH(concat_heads(x), "concat_heads: (2,3) is not (B,H,T,D)");
}
