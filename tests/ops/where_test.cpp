// A choice between two tensors, element by element.
#include <limits>

#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/numbers.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

TEST_CASE("where broadcasts the condition and both choices", "[ops][where]") {
  const Condition rows({2, 1}, {1, 0});
  const auto f = [&](const auto& v) { return where(rows, v[0], v[1]); };
  const Pass<double> found =
      pass<double>(f, {Tensor<double>({3}, {1, 2, 3}), Tensor<double>({2, 2, 1}, {4, 5, 6, 7})},
                   Tensor<double>({2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  CHECK(same_bits(found.y, Tensor<double>({2, 2, 3}, {1, 2, 3, 5, 5, 5, 1, 2, 3, 7, 7, 7})));
  CHECK(same_bits(found.d[0], Tensor<double>({3}, {8, 10, 12})));
  CHECK(same_bits(found.d[1], Tensor<double>({2, 2, 1}, {0, 15, 0, 33})));
  CHECK(where(Condition({0}, {}), Var<float>(Tensor<float>::zeros({1})),
              Var<float>(Tensor<float>::zeros({})))
            .shape() == Shape{0});
}

TEST_CASE("a NaN that is not chosen reaches neither the result nor a gradient", "[ops][where]") {
  const Condition first({2}, {1, 0});
  const auto f = [&](const auto& v) { return where(first, v[0], v[1]) * v[2]; };
  const Tensor<double> a({2}, {1, kNaN}), b({2}, {kNaN, 2}), factor({2}, {3, 5});
  const Pass<double> found = pass<double>(f, {a, b, factor}, Tensor<double>({2}, {1, 1}));
  CHECK(same_bits(found.y, Tensor<double>({2}, {3, 10})));
  CHECK(same_bits(found.d[0], Tensor<double>({2}, {3, 0})));
  CHECK(same_bits(found.d[1], Tensor<double>({2}, {0, 5})));
  CHECK(same_bits(found.d[2], Tensor<double>({2}, {1, 2})));

  const auto plain = [&](const auto& v) { return where(first, v[0], v[1]); };
  const Pass<double> one =  // nor does a gradient that is NaN reach what was not chosen
      pass<double>(plain, {factor, factor}, Tensor<double>({2}, {1, kNaN}));
  CHECK(same_bits(one.d[0], Tensor<double>({2}, {1, 0})));
}

TEST_CASE("where names what does not fit", "[ops][where][errors]") {
  const Var<float> x = Tensor<float>::zeros({2, 3}), y = Tensor<float>::zeros({2});
  const Condition two({2}, {1, 0});
  CHECK_THROWS_WITH(where(two, x, y), "where: (2,3) and (2) do not broadcast: 3 against 2");
  CHECK_THROWS_WITH(where(two, x, x), "where: (2) and (2,3) do not broadcast: 2 against 3");
  CHECK_THROWS_WITH(Condition({3}, {1, 0}), "condition: got 2 values for shape (3)");
  CHECK_THROWS_WITH(where(two, {}, y), "where: there is no first input");
}
