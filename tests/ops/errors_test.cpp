// What a user reads when shapes do not fit.
#include "headwise/ops/ops.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

Var<float> of(const Shape& shape) { return Tensor<float>::zeros(shape); }

}  // namespace

TEST_CASE("linear names every shape when they do not fit", "[ops][errors]") {
  CHECK_THROWS_WITH(
      linear(of({2, 3}), of({5, 4}), of({5})),
      "linear: input (2,3), weight (5,4) and bias (5) do not fit (..., C), (O,C), (O)");
  CHECK_THROWS_WITH(
      linear(of({2, 4}), of({5, 4}), of({4})),
      "linear: input (2,4), weight (5,4) and bias (4) do not fit (..., C), (O,C), (O)");
  CHECK_THROWS_WITH(linear(of({2, 3}), of({5, 4})),
                    "linear: input (2,3) and weight (5,4) do not fit (..., C), (O,C)");
  CHECK_THROWS_WITH(linear(of({2, 3}), of({3})),
                    "linear: input (2,3) and weight (3) do not fit (..., C), (O,C)");
  CHECK_THROWS_WITH(linear(of({}), of({5, 1})),
                    "linear: input () and weight (5,1) do not fit (..., C), (O,C)");
  CHECK_THROWS_AS(linear(of({2, 3}), of({5, 4})), ShapeError);
}

TEST_CASE("gelu_linear names every shape when they do not fit", "[ops][errors]") {
  CHECK_THROWS_WITH(
      gelu_linear(of({2, 3}), of({5, 4}), of({5})),
      "gelu_linear: input (2,3), weight (5,4) and bias (5) do not fit (..., C), (O,C), (O)");
  CHECK_THROWS_WITH(
      gelu_linear(of({2, 4}), of({5, 4}), of({4})),
      "gelu_linear: input (2,4), weight (5,4) and bias (4) do not fit (..., C), (O,C), (O)");
  CHECK_THROWS_WITH(gelu_linear(of({2, 3}), of({5, 4}), {}),
                    "gelu_linear: input (2,3) and weight (5,4) do not fit (..., C), (O,C)");
  CHECK_THROWS_AS(gelu_linear(of({2, 3}), of({5, 4}), {}), ShapeError);
}

TEST_CASE("matmul names both shapes when they do not fit", "[ops][errors]") {
  CHECK_THROWS_WITH(matmul(of({2, 3}), of({4, 5})),
                    "matmul: (2,3) and (4,5) do not fit (..., M,K), (..., K,N)");
  CHECK_THROWS_WITH(matmul(of({3}), of({3, 5})),
                    "matmul: (3) and (3,5) do not fit (..., M,K), (..., K,N)");
  CHECK_THROWS_WITH(matmul(of({2, 2, 3}), of({4, 3, 5})),
                    "matmul: (2,2,3) and (4,3,5) do not broadcast: 2 against 4");
  CHECK_THROWS_AS(matmul(of({2}), of({2})), ShapeError);
}

TEST_CASE("layer_norm names the shapes that do not fit", "[ops][errors]") {
  CHECK_THROWS_WITH(layer_norm(of({2, 3}), of({4}), {}),
                    "layer_norm: input (2,3) and gain (4) do not fit");
  CHECK_THROWS_WITH(layer_norm(of({2, 3}), of({3}), of({1, 3})),
                    "layer_norm: input (2,3) and bias (1,3) do not fit");
  CHECK_THROWS_WITH(layer_norm(of({}), {}, {}), "layer_norm: input () is not (..., C)");
  CHECK_THROWS_WITH(layer_norm(of({2, 0}), {}, {}), "layer_norm: input (2,0) is not (..., C)");
}

TEST_CASE("attention names the shapes that do not fit", "[ops][attention][errors]") {
  const Var<float> q = of({2, 3, 4}), k = of({2, 5, 4});
  CHECK_THROWS_WITH(attention(of({3, 4}), k, k, {}),
                    "attention: q (3,4), k (2,5,4) and v (2,5,4) do not fit (B,T,C), (B,S,C'), "
                    "(B,S,C'')");
  CHECK_THROWS_WITH(attention(q, of({1, 5, 4}), k, {}),
                    "attention: q (2,3,4), k (1,5,4) and v (2,5,4) do not fit (B,T,C), (B,S,C'), "
                    "(B,S,C'')");
  CHECK_THROWS_WITH(attention(q, k, of({2, 6, 4}), {}),
                    "attention: q (2,3,4), k (2,5,4) and v (2,6,4) do not fit (B,T,C), (B,S,C'), "
                    "(B,S,C'')");
  CHECK_THROWS_WITH(attention(q, of({2, 5, 6}), k, {.heads = 2}),
                    "attention: k (2,5,6) is not (B,S,C') with C' 2 heads of q's width 2");
  CHECK_THROWS_WITH(attention(q, k, of({2, 5, 5}), {.heads = 2}),
                    "attention: v (2,5,5) is not (B,S,C'') with C'' a multiple of 2 heads");
  CHECK_THROWS_WITH(attention(q, k, k, {.mask = allow(3, 4, [](Index, Index) { return true; })}),
                    "attention: the mask is for 3 queries and 4 keys, not 3 and 5");
}

TEST_CASE("attention names a head count that does not divide the width",
          "[ops][attention][errors]") {
  const Var<float> x = of({1, 2, 10});
  CHECK_THROWS_WITH(attention(x, x, x, {.heads = 3}),
                    "attention: q (1,2,10) is not (B,T,C) with C a multiple of 3 heads");
  CHECK_THROWS_WITH(attention(x, x, x, {.heads = 10, .kv_heads = 3}),
                    "attention: 10 heads cannot share 3 heads of keys and values");
  for (const Index heads : {0, -1})
    CHECK_THROWS_AS(attention(x, x, x, {.heads = heads}), ShapeError);
  CHECK_THROWS_AS(attention(x, x, x, {.heads = 2, .kv_heads = -1}), ShapeError);
  CHECK_THROWS_AS(attention(of({1, 2, 0}), of({1, 2, 0}), x, {}), ShapeError);
}

TEST_CASE("mean refuses to divide by nothing", "[ops][errors]") {
  CHECK_THROWS_WITH(mean(of({2, 0})), "mean: (2,0) has no elements");
  CHECK(sum(of({2, 0})).item() == 0);
}

TEST_CASE("a mask refuses negative sizes", "[ops][errors]") {
  CHECK_THROWS_WITH(allow(-1, 2, [](Index, Index) { return true; }), "mask: -1 queries and 2 keys");
}

TEST_CASE("a variable that is not there is refused, not read", "[ops][errors]") {
  // A bias may be absent; what an op cannot do without may not.
  const Var<float> none, x = of({2, 3}), matrix = of({3, 3});
  CHECK(none.absent());
  CHECK(throws_in_child<ShapeError>([&] { linear(none, matrix); }));
  CHECK(throws_in_child<ShapeError>([&] { linear(x, none); }));
  CHECK(throws_in_child<ShapeError>([&] { gelu_linear(none, matrix, none); }));
  CHECK(throws_in_child<ShapeError>([&] { gelu_linear(x, none, none); }));
  CHECK(throws_in_child<ShapeError>([&] { matmul(none, matrix); }));
  CHECK(throws_in_child<ShapeError>([&] { layer_norm(none, {}, {}); }));
  CHECK(throws_in_child<ShapeError>([&] { embedding(none, Ids({1}, {0})); }));
  CHECK(throws_in_child<ShapeError>([&] { cross_entropy(none, Ids({}, {0})); }));
  CHECK(throws_in_child<ShapeError>([&] { linear_cross_entropy(none, matrix, Ids({}, {0})); }));
  CHECK(throws_in_child<ShapeError>([&] { linear_cross_entropy(x, none, Ids({2}, {0, 0})); }));
  CHECK(throws_in_child<ShapeError>([&] { attention(none, none, none, {}); }));
  CHECK(throws_in_child<ShapeError>([&] { masked_softmax(none, everything()); }));
  CHECK(throws_in_child<ShapeError>([&] { add(x, none); }));
  CHECK(throws_in_child<ShapeError>([&] { sub(none, x); }));
  CHECK(throws_in_child<ShapeError>([&] { mul(x, none); }));
  CHECK(throws_in_child<ShapeError>([&] { sum(none); }));
  CHECK(throws_in_child<ShapeError>([&] { mean(none); }));
  CHECK(throws_in_child<ShapeError>([&] { gelu(none); }));
  CHECK(throws_in_child<ShapeError>([&] { div(x, none); }));
  CHECK(throws_in_child<ShapeError>([&] { neg(none); }));
  CHECK(throws_in_child<ShapeError>([&] { exp(none); }));
  CHECK(throws_in_child<ShapeError>([&] { max(none); }));
  CHECK(throws_in_child<ShapeError>([&] { matmul(matrix, none); }));
  CHECK(throws_in_child<ShapeError>([&] { softmax(none); }));
  CHECK(throws_in_child<ShapeError>([&] { log_softmax(none); }));
  CHECK(throws_in_child<ShapeError>([&] { rms_norm(none, {}); }));
  CHECK(throws_in_child<ShapeError>([&] { where(Condition({}, {1}), none, none); }));
  CHECK(throws_in_child<ShapeError>([&] { permute(none, {}); }));
  CHECK(throws_in_child<ShapeError>([&] { reshape(none, {0}); }));
  CHECK(throws_in_child<ShapeError>([&] { slice(none, 0, 0, 0); }));
  CHECK(throws_in_child<ShapeError>([&] { concat<float>({x, none}, 0); }));
  CHECK(throws_in_child<ShapeError>([&] { stack<float>({none, none}, 0); }));
  CHECK(throws_in_child<ShapeError>([&] { split_heads(none, 1); }));
  CHECK(throws_in_child<ShapeError>([&] { concat_heads(none); }));
  Rng rng(1);
  CHECK(throws_in_child<ShapeError>([&] { dropout(none, 0.5, &rng); }));
}

TEST_CASE("ids that no longer fit their shape are refused, not read", "[ops][errors]") {
  Ids few({2, 3}, {0, 1, 2, 0, 1, 2}), many = few;
  few.values.resize(4);
  many.values.resize(9);
  const Var<float> logits = of({2, 3, 4}), table = of({4, 5}), x = of({2, 3, 5});
  for (const Ids& ids : {few, many}) {
    CHECK_THROWS_WITH(embedding(table, ids),
                      fmt::format("embedding: got {} ids for shape (2,3)", ids.values.size()));
    CHECK_THROWS_WITH(cross_entropy(logits, ids),
                      fmt::format("cross_entropy: got {} ids for shape (2,3)", ids.values.size()));
    CHECK_THROWS_AS(linear_cross_entropy(x, table, ids), ShapeError);
  }
  CHECK_THROWS_WITH(Ids({2}, {1}), "ids: got 1 ids for shape (2)");
  Condition condition({3}, {1, 0, 1});
  condition.holds.resize(2);
  CHECK_THROWS_WITH(where(condition, of({3}), of({3})), "where: got 2 values for shape (3)");
}

TEST_CASE("a mask whose parts were changed is refused where they do not fit", "[ops][errors]") {
  const Var<float> x = of({2, 3, 4});
  Mask table = allow(3, 3, [](Index, Index) { return true; });
  table.table = std::make_shared<const Mask::Table>(Mask::Table{3, 3, {1, 1}});
  CHECK_THROWS_WITH(attention(x, x, x, {.mask = table}),
                    "attention: the mask's table has 2 entries for 3 queries and 3 keys");
  Mask steep;
  steep.bias = Tensor<double>::zeros({1, 2, 1, 3, 3});
  CHECK_THROWS_AS(attention(x, x, x, {.mask = steep}), ShapeError);
}

TEST_CASE("options that are no numbers are refused", "[ops][errors]") {
  const Var<float> x = of({2, 3, 4});
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               inf = std::numeric_limits<double>::infinity();
  for (const double bad : {nan, inf, -inf}) {
    CHECK_THROWS_AS(attention(x, x, x, {.scale = static_cast<float>(bad)}), UsageError);
    CHECK_THROWS_AS(attention(x, x, x, {.dropout = bad}), UsageError);
    CHECK_THROWS_AS(dropout(x, bad, nullptr), UsageError);
    CHECK_THROWS_AS(layer_norm(x, {}, {}, bad), UsageError);
    CHECK_THROWS_AS(add_layer_norm(x, x, {}, {}, bad), UsageError);
    CHECK_THROWS_AS(rms_norm(x, {}, bad), UsageError);
  }
  CHECK_THROWS_WITH(attention(x, x, x, {.scale = std::numeric_limits<float>::infinity()}),
                    "attention: scale inf is not finite");
  CHECK_THROWS_WITH(layer_norm(x, {}, {}, -1), "layer_norm: eps -1 is not a finite number >= 0");
}
