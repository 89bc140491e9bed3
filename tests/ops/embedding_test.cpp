#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

TEST_CASE("embedding takes the rows of a table", "[ops][embedding]") {
  const Tensor<float> table({3, 2}, {1, 2, 3, 4, 5, 6});
  CHECK(same_bits(embedding<float>(table, Ids({2, 2}, {2, 0, 0, 1})).value(),
                  Tensor<float>({2, 2, 2}, {5, 6, 1, 2, 1, 2, 3, 4})));
  CHECK(embedding<float>(table, Ids({}, {1})).shape() == Shape{2});
  CHECK(embedding<float>(table, Ids({0}, {})).shape() == Shape{0, 2});
}

TEMPLATE_TEST_CASE("gradients of repeated ids add up, for any number of threads",
                   "[ops][embedding]", float, double) {
  using T = TestType;
  const Ids ids({3}, {0, 0, 2});
  for (const int n : {1, 2, 4}) {
    const Threads use(n);
    const Pass<T> found =
        pass<T>([&](const auto& v) { return embedding(v[0], ids); }, {Tensor<T>({3, 1}, {1, 2, 3})},
                Tensor<T>({3, 1}, {T(.2), T(.3), T(.7)}));
    CHECK(relative_gap(found.d[0], Tensor<T>({3, 1}, {T(.5), 0, T(.7)})) < 1e-6);
    CHECK(found.d[0].data()[1] == 0);
  }
}

TEMPLATE_TEST_CASE("many ids give the gradient of plain additions in order", "[ops][embedding]",
                   float, double) {
  using T = TestType;
  constexpr Index kRows = 7, kWidth = 33, kIds = 4000;
  Rng rng(3);
  std::vector<Id> ids;
  for (Index i = 0; i < kIds; ++i) ids.push_back(static_cast<Id>(rng.below(kRows)));
  const Tensor<T> dy = random_tensor<T>({kIds, kWidth}, 1);
  Tensor<T> expected = Tensor<T>::zeros({kRows, kWidth});
  T* to = expected.data();
  for (Index i = 0; i < kIds; ++i)
    for (Index c = 0; c < kWidth; ++c)
      to[ids[static_cast<std::size_t>(i)] * kWidth + c] += dy.data()[i * kWidth + c];
  for (const int n : {1, 2, 4}) {
    const Threads use(n);
    const Pass<T> found = pass<T>([&](const auto& v) { return embedding(v[0], Ids({kIds}, ids)); },
                                  {random_tensor<T>({kRows, kWidth}, 2)}, dy);
    CHECK(same_bits(found.d[0], expected));
  }
}

TEST_CASE("an id outside the table is refused with its place", "[ops][embedding][errors]") {
  const Var<float> table = random_tensor<float>({16, 3}, 1);
  for (const Id id : {-1, 16, 2'000'000'000, kIgnore}) {
    CHECK_THROWS_WITH(embedding(table, Ids({2, 2}, {0, 15, id, 3})),
                      fmt::format("embedding: id {} at position 2 is not in [0, 15]", id));
    CHECK_THROWS_AS(embedding(table, Ids({1}, {id})), ShapeError);
  }
  CHECK_THROWS_WITH(embedding<float>(random_tensor<float>({3}, 1), Ids({1}, {0})),
                    "embedding: table (3) is not (V,C)");
  CHECK(embedding(table, Ids({2}, {0, 15})).shape() == Shape{2, 3});
}
