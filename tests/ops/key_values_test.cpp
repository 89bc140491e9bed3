#include "headwise/ops/key_values.hpp"

#include "headwise/ops/ops.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using test::random_tensor;

namespace {

/// Rows [begin, end) of each sequence of x (B,T,C).
Tensor<double> rows(const Tensor<double>& x, Index begin, Index end) {
  return slice(Var<double>(x), 1, begin, end).value();
}

Tensor<double> attend(const Tensor<double>& q, const Visible<double>& c) {
  return attention(Var<double>(q), c.k, c.v, {.heads = 2, .mask = c.mask}).value();
}

}  // namespace

TEST_CASE("attention over kept keys is causal attention over all of them", "[ops][cache]") {
  const auto q = random_tensor<double>({2, 9, 8}, 1), k = random_tensor<double>({2, 9, 8}, 2),
             v = random_tensor<double>({2, 9, 6}, 3);
  const Tensor<double> all =
      attention(Var<double>(q), Var<double>(k), Var<double>(v), {.heads = 2}).value();
  KeyValues<double> kept(2, 11);
  Index at = 0;
  for (const Index n : {4, 1, 1, 3}) {
    const auto c = kept.extend(rows(k, at, at + n), rows(v, at, at + n));
    CHECK(test::relative_gap(attend(rows(q, at, at + n), c), rows(all, at, at + n)) < 1e-13);
    at += n;
    CHECK(kept.lengths() == std::vector<Index>{at, at});
  }
}

TEST_CASE("sequences of unequal lengths go on side by side", "[ops][cache]") {
  const auto q = random_tensor<double>({1, 6, 4}, 1), k = random_tensor<double>({1, 6, 4}, 2),
             v = random_tensor<double>({1, 6, 4}, 3);
  const Tensor<double> all =
      attention(Var<double>(q), Var<double>(k), Var<double>(v), {.heads = 2}).value();
  KeyValues<double> both(2, 6), three(1, 6), five(1, 8);
  (void)three.extend(rows(k, 0, 3), rows(v, 0, 3));
  (void)five.extend(rows(k, 0, 5), rows(v, 0, 5));
  both.copy(0, three);
  both.copy(1, five);
  CHECK(both.lengths() == std::vector<Index>{3, 5});
  const auto next = [](const Tensor<double>& x) {
    return concat<double>({slice(Var<double>(x), 1, 3, 4), slice(Var<double>(x), 1, 5, 6)}, 0)
        .value();
  };
  const Tensor<double> got = attend(next(q), both.extend(next(k), next(v)));
  CHECK(test::relative_gap(got, next(all)) < 1e-13);
  both.clear(1);
  both.copy(0, three);
  CHECK(both.lengths() == std::vector<Index>{3, 0});
}

TEST_CASE("keys that do not fit are refused", "[ops][cache][errors]") {
  const auto x = [](Shape shape) { return Var<double>(Tensor<double>::zeros(shape)); };
  CHECK_THROWS_WITH(KeyValues<double>(0, 4), "key_values: 0 sequences of 4 tokens");
  KeyValues<double> kept(2, 4), one(1, 4);
  CHECK_THROWS_WITH(kept.extend(x({1, 1, 2}), x({1, 1, 2})),
                    "key_values: k (1,1,2) and v (1,1,2) are not (B,T,C) of 2 sequences");
  CHECK_THROWS_WITH(kept.extend(x({2, 5, 2}), x({2, 5, 2})),
                    "key_values: 0 and 5 more tokens do not fit the room of 4");
  (void)one.extend(x({1, 3, 2}), x({1, 3, 2}));
  kept.copy(1, one);
  CHECK_THROWS_WITH(kept.extend(x({2, 2, 2}), x({2, 2, 2})),
                    "key_values: 2 tokens cannot follow sequences of 0 to 3 tokens at once");
  CHECK_THROWS_WITH(kept.extend(x({2, 1, 3}), x({2, 1, 2})),
                    "key_values: k (2,1,3) and v (2,1,2) do not continue (2,4,2) and (2,4,2)");
  CHECK(kept.lengths() == std::vector<Index>{0, 3});
  KeyValues<double> wide(1, 4);
  (void)wide.extend(x({1, 1, 3}), x({1, 1, 2}));
  CHECK_THROWS_WITH(kept.copy(0, wide),
                    "key_values: keys (1,4,3) and values (1,4,2) cannot be copied into (2,4,2) and "
                    "(2,4,2)");
  Tape<double> tape;
  CHECK_THROWS_WITH(
      one.extend(tape.leaf(Tensor<double>::zeros({1, 1, 2})), x({1, 1, 2})),
      "key_values: keys and values that are kept send no gradient; decode without a tape");
}
