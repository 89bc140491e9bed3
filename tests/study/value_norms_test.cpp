#include "headwise/study/value_norms.hpp"

#include <cmath>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::study;

TEMPLATE_TEST_CASE("the size of what a head moves", "[study]", float, double) {
  using T = TestType;
  Rng rng(1);
  MultiHeadAttention<T> attn({.width = 4, .heads = 2}, rng);
  // Head 0 writes its two values to columns 0 and 1, head 1 writes the negatives of its there.
  attn.w_o.weight.value = Tensor<T>({4, 4}, {1, 0, -1, 0, 0, 1, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0});
  const Tensor<T> v({1, 2, 4}, {3, 4, 3, 4, 0, 2, 1, 0});
  const Tensor<double> norms = value_norms(attn, v);
  CHECK(test::relative_gap(norms, Tensor<double>({1, 2, 2}, {5, 2, 5, 1})) < 1e-15);

  const Tensor<T> pattern({1, 2, 2, 2}, {1, 0, .5, .5, 1, 0, 0, 1});
  // Query 0: what the heads move from key 0 cancels. Query 1: (1.5,2) from key 0, (0,1) - (1,0)
  // from key 1.
  const Tensor<double> expected({1, 2, 2}, {0, 0, 2.5, std::sqrt(2.0)});
  CHECK(test::relative_gap(combined_norms(attn, pattern, v), expected) < 1e-15);
}

TEST_CASE("norms of values refuse what does not fit", "[study][errors]") {
  Rng rng(1);
  const MultiHeadAttention<double> attn({.width = 4, .heads = 2}, rng);
  const auto zeros = [](const Shape& shape) { return Tensor<double>::zeros(shape); };
  CHECK(test::message_of<ShapeError>([&] {
          value_norms(attn, zeros({1, 2, 5}));
        }) == "value_norms: values (1,2,5) are not (B,T,4)");
  CHECK(test::message_of<ShapeError>([&] {
          combined_norms(attn, zeros({1, 3, 2, 2}), zeros({1, 2, 4}));
        }) == "combined_norms: a pattern (1,3,2,2) is not (1,2,T,2)");
}
