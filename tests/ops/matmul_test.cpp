// Products of batches of matrices against plain loops.
#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

struct Factors {
  Shape a, b, result;
};

/// Each result is what numpy.matmul gives.
const std::vector<Factors> kFactors = {
    {{2, 3}, {3, 4}, {2, 4}},
    {{5, 2, 3}, {5, 3, 4}, {5, 2, 4}},
    {{5, 2, 3}, {3, 4}, {5, 2, 4}},
    {{2, 3}, {5, 3, 4}, {5, 2, 4}},
    {{1, 2, 3}, {5, 3, 4}, {5, 2, 4}},
    {{5, 2, 3}, {1, 3, 4}, {5, 2, 4}},
    {{2, 1, 2, 3}, {1, 3, 3, 1}, {2, 3, 2, 1}},
    {{2, 3, 1, 7}, {3, 7, 5}, {2, 3, 1, 5}},
    {{2, 1, 2, 1, 2, 3}, {1, 2, 1, 2, 3, 2}, {2, 2, 2, 2, 2, 2}},
    {{0, 3}, {3, 4}, {0, 4}},
    {{2, 0}, {0, 4}, {2, 4}},
    {{2, 3}, {3, 0}, {2, 0}},
    {{2, 3}, {0, 3, 4}, {0, 2, 4}},
    {{3, 2, 0}, {3, 0, 4}, {3, 2, 4}},
    {{1, 1, 3}, {4, 3, 0}, {4, 1, 0}},
};

/// Which matrix of `part` is repeated as matrix i of `whole`.
Index source(Index i, const Shape& whole, const Shape& part) {
  Index at = 0, stride = 1;
  for (Index axis = 3; axis <= whole.rank(); ++axis) {
    const Index position = i % whole[-axis];
    i /= whole[-axis];
    if (axis > part.rank()) continue;
    at += stride * (part[-axis] == 1 ? 0 : position);
    stride *= part[-axis];
  }
  return at;
}

}  // namespace

TEMPLATE_TEST_CASE("products of batches, and their gradients, equal plain loops", "[ops][matmul]",
                   float, double) {
  using T = TestType;
  constexpr double kClose = std::same_as<T, double> ? 1e-14 : 1e-6;
  for (const Factors& f : kFactors) {
    CAPTURE(to_string(f.a), to_string(f.b));
    const Tensor<double> a = random_tensor<double>(f.a, 1), b = random_tensor<double>(f.b, 2),
                         dy = random_tensor<double>(f.result, 3);
    Tensor<double> y = Tensor<double>::zeros(f.result), da = Tensor<double>::zeros(f.a),
                   db = Tensor<double>::zeros(f.b);
    const Index m = f.a[-2], k = f.a[-1], n = f.b[-1];
    for (Index r = 0; r < y.size(); ++r) {
      const Index i = r / (m * n), row = r / n % m, column = r % n;
      const Index from_a = (source(i, f.result, f.a) * m + row) * k;
      const Index from_b = source(i, f.result, f.b) * k * n + column;
      for (Index j = 0; j < k; ++j) {
        y.data()[r] += a.data()[from_a + j] * b.data()[from_b + j * n];
        da.data()[from_a + j] += dy.data()[r] * b.data()[from_b + j * n];
        db.data()[from_b + j * n] += dy.data()[r] * a.data()[from_a + j];
      }
    }
    const Pass<T> found =
        pass<T>([](const auto& v) { return matmul(v[0], v[1]); }, all_as<T>({a, b}), as<T>(dy));
    CHECK(relative_gap(found.y, y) < kClose);
    CHECK(relative_gap(found.d[0], da) < kClose);
    CHECK(relative_gap(found.d[1], db) < kClose);
  }
}

TEST_CASE("one product is one record, whatever the batch", "[ops][matmul]") {
  for (const Factors& f : kFactors) {
    Tape<float> tape;
    matmul(tape.leaf(Tensor<float>::zeros(f.a)), tape.leaf(Tensor<float>::zeros(f.b)));
    CHECK(tape.op_names() == std::vector<std::string>{"leaf", "leaf", "matmul"});
  }
}
