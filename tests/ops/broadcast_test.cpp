// Elementwise functions of two tensors broadcast as NumPy does.
#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

struct Pair {
  Shape a, b, result;
};

/// Each result is what numpy.broadcast_shapes says.
const std::vector<Pair> kPairs = {
    {{}, {}, {}},
    {{}, {3}, {3}},
    {{3}, {3}, {3}},
    {{3}, {1}, {3}},
    {{1}, {}, {1}},
    {{2, 3}, {3}, {2, 3}},
    {{3}, {2, 3}, {2, 3}},
    {{2, 1}, {3}, {2, 3}},
    {{2, 1}, {1, 3}, {2, 3}},
    {{1, 1}, {3}, {1, 3}},
    {{4, 2, 3}, {2, 1}, {4, 2, 3}},
    {{4, 1, 3}, {2, 1}, {4, 2, 3}},
    {{1, 2, 1}, {4, 1, 3}, {4, 2, 3}},
    {{2, 3, 4, 5}, {3, 1, 5}, {2, 3, 4, 5}},
    {{2, 1, 2, 1, 2, 1}, {1, 3, 1, 3, 1, 3}, {2, 3, 2, 3, 2, 3}},
    {{0}, {1}, {0}},
    {{0}, {}, {0}},
    {{2, 0}, {2, 1}, {2, 0}},
    {{0, 3}, {1, 3}, {0, 3}},
    {{1, 3}, {0, 1}, {0, 3}},
};

const std::vector<std::pair<Shape, Shape>> kMisfits = {
    {{2}, {3}},          {{2, 3}, {2}}, {{2, 3}, {3, 2}}, {{2, 3}, {2, 3, 1}},
    {{4, 2, 3}, {4, 3}}, {{0}, {2}},    {{2, 0}, {2, 2}}, {{2, 1, 3}, {3, 3, 2}},
};

/// Where element i of a tensor of shape `whole` sits in one of shape `part`.
Index source(Index i, const Shape& whole, const Shape& part) {
  Index at = 0, stride = 1;
  for (Index axis = 1; axis <= whole.rank(); ++axis) {
    const Index position = i % whole[-axis];
    i /= whole[-axis];
    if (axis > part.rank()) continue;
    at += stride * (part[-axis] == 1 ? 0 : position);
    stride *= part[-axis];
  }
  return at;
}

struct Binary {
  std::string name;
  Function<double> op;
  double (*f)(double, double);
  double (*da)(double, double);  // derivatives
  double (*db)(double, double);
};

const auto one = [](double, double) { return 1.0; };
const std::vector<Binary> kOps = {
    {"add", [](const auto& x) { return x[0] + x[1]; }, [](double a, double b) { return a + b; },
     one, one},
    {"sub", [](const auto& x) { return x[0] - x[1]; }, [](double a, double b) { return a - b; },
     one, [](double, double) { return -1.0; }},
    {"mul", [](const auto& x) { return x[0] * x[1]; }, [](double a, double b) { return a * b; },
     [](double, double b) { return b; }, [](double a, double) { return a; }},
    {"div", [](const auto& x) { return x[0] / x[1]; }, [](double a, double b) { return a / b; },
     [](double, double b) { return 1 / b; }, [](double a, double b) { return -a / (b * b); }},
};

}  // namespace

TEST_CASE("binary ops broadcast and sum their gradients back", "[ops][broadcast]") {
  for (const Binary& binary : kOps)
    for (const Pair& p : kPairs) {
      CAPTURE(binary.name, to_string(p.a), to_string(p.b));
      const Tensor<double> a = random_tensor<double>(p.a, 1), b = random_tensor<double>(p.b, 2),
                           dy = random_tensor<double>(p.result, 3);
      const Pass<double> found = pass<double>(binary.op, {a, b}, dy);
      REQUIRE(found.y.shape() == p.result);
      Tensor<double> da = Tensor<double>::zeros(p.a), db = Tensor<double>::zeros(p.b);
      bool exact = true;
      for (Index i = 0; i < dy.size(); ++i) {
        const Index in_a = source(i, p.result, p.a), in_b = source(i, p.result, p.b);
        const double x = std::as_const(a).data()[in_a], z = std::as_const(b).data()[in_b];
        exact &= found.y.data()[i] == binary.f(x, z);
        da.data()[in_a] += dy.data()[i] * binary.da(x, z);
        db.data()[in_b] += dy.data()[i] * binary.db(x, z);
      }
      CHECK(exact);
      CHECK(relative_gap(found.d[0], da) < 1e-14);
      CHECK(relative_gap(found.d[1], db) < 1e-14);
    }
}

TEST_CASE("shapes that do not broadcast are refused both ways round", "[ops][broadcast][errors]") {
  for (const Binary& binary : kOps)
    for (const auto& [a, b] : kMisfits) {
      CAPTURE(binary.name, to_string(a), to_string(b));
      const Var<double> x = Tensor<double>::zeros(a), y = Tensor<double>::zeros(b);
      CHECK_THROWS_AS(binary.op({x, y}), ShapeError);
      CHECK_THROWS_AS(binary.op({y, x}), ShapeError);
    }
}

TEST_CASE("a misfit names the op, both shapes and the two sizes", "[ops][broadcast][errors]") {
  const Var<float> x = Tensor<float>::zeros({2, 3}), y = Tensor<float>::zeros({2});
  CHECK_THROWS_WITH(add(x, y), "add: (2,3) and (2) do not broadcast: 3 against 2");
  CHECK_THROWS_WITH(sub(y, x), "sub: (2) and (2,3) do not broadcast: 2 against 3");
  CHECK_THROWS_WITH(x * y, "mul: (2,3) and (2) do not broadcast: 3 against 2");
}

TEST_CASE("a bias's gradient is summed over what broadcasting repeated", "[ops][broadcast]") {
  const auto loss = [](const std::vector<Var<double>>& v) {
    const Var<double> y = matmul(v[0], v[1]) + v[2];
    return sum(y * y);
  };
  const Pass<double> found =
      pass<double>(loss,
                   {Tensor<double>::full({2, 3}, 1), Tensor<double>::full({3, 1}, 1),
                    Tensor<double>({1, 3}, {0, 1, 2})},
                   Tensor<double>({}, {1}));
  CHECK(found.y.item() == 100);
  CHECK(same_bits(found.d[1], Tensor<double>::full({3, 1}, 48)));
  CHECK(same_bits(found.d[2], Tensor<double>({1, 3}, {12, 16, 20})));
}

TEST_CASE("an op of one variable with itself broadcasts nothing and counts twice",
          "[ops][broadcast]") {
  const Tensor<double> x({2}, {3, -4}), ones = Tensor<double>::full({2}, 1);
  const auto gradient = [&](const Function<double>& f) { return pass<double>(f, {x}, ones).d[0]; };
  CHECK(
      same_bits(gradient([](const auto& v) { return v[0] + v[0]; }), Tensor<double>({2}, {2, 2})));
  CHECK(
      same_bits(gradient([](const auto& v) { return v[0] - v[0]; }), Tensor<double>({2}, {0, 0})));
  CHECK(
      same_bits(gradient([](const auto& v) { return v[0] * v[0]; }), Tensor<double>({2}, {6, -8})));
}
