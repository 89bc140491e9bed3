// Elementwise functions of one tensor, and division.
#include <cmath>
#include <limits>

#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/numbers.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

struct Unary {
  std::string name;
  Function<double> op;
  double (*f)(double);
  double (*df)(double);
};

/// Derivatives are written from x alone, other than the ops do.
const std::vector<Unary> kUnaryOps = {
    {"neg", [](const auto& x) { return -x[0]; }, [](double x) { return -x; },
     [](double) { return -1.0; }},
    {"exp", [](const auto& x) { return exp(x[0]); }, [](double x) { return std::exp(x); },
     [](double x) { return std::exp(x); }},
    {"log", [](const auto& x) { return log(x[0]); }, [](double x) { return std::log(x); },
     [](double x) { return std::pow(x, -1); }},
    {"sqrt", [](const auto& x) { return sqrt(x[0]); }, [](double x) { return std::pow(x, 0.5); },
     [](double x) { return std::pow(x, -0.5) / 2; }},
    {"tanh", [](const auto& x) { return tanh(x[0]); },
     [](double x) { return 1 - 2 / (std::exp(2 * x) + 1); },
     [](double x) { return std::pow(std::cosh(x), -2); }},
    {"sigmoid", [](const auto& x) { return sigmoid(x[0]); },
     [](double x) { return 1 / (1 + std::exp(-x)); },
     [](double x) { return 0.25 * std::pow(std::cosh(x / 2), -2); }},
    {"relu", [](const auto& x) { return relu(x[0]); }, [](double x) { return std::fmax(x, 0); },
     [](double x) { return x > 0 ? 1.0 : 0.0; }},
    {"square", [](const auto& x) { return square(x[0]); }, [](double x) { return x * x; },
     [](double x) { return x + x; }},
    {"abs", [](const auto& x) { return abs(x[0]); }, [](double x) { return std::fabs(x); },
     [](double x) { return x > 0 ? 1.0 : -1.0; }},
    {"pow", [](const auto& x) { return pow(x[0], 2.5); },
     [](double x) { return x * x * std::sqrt(x); },
     [](double x) { return 2.5 * x * std::sqrt(x); }},
    {"pow 0", [](const auto& x) { return pow(x[0], 0); }, [](double) { return 1.0; },
     [](double) { return 0.0; }},
};

bool needs_positive(const std::string& name) {
  return name == "log" || name == "sqrt" || name == "pow";
}

/// f(x) of one number, and its derivative.
std::pair<double, double> at(const Function<double>& f, double x) {
  const Pass<double> found = pass<double>(f, {Tensor<double>({1}, {x})}, Tensor<double>({1}, {1}));
  return {found.y.item(), found.d[0].item()};
}

}  // namespace

TEST_CASE("unary ops and their derivatives are those of the C library", "[ops][elementwise]") {
  for (const Unary& unary : kUnaryOps)
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{3, 0, 2}, Shape{7, 3, 5}}) {
      CAPTURE(unary.name, to_string(shape));
      Tensor<double> x = random_tensor<double>(shape, 1), dy = random_tensor<double>(shape, 2);
      for (double *v = x.data(), *end = v + x.size(); v != end; ++v)
        if (needs_positive(unary.name)) *v = std::fabs(*v);
      Tensor<double> y = x, dx = x;
      for (Index i = 0; i < x.size(); ++i) {
        y.data()[i] = unary.f(std::as_const(x).data()[i]);
        dx.data()[i] = dy.data()[i] * unary.df(std::as_const(x).data()[i]);
      }
      const Pass<double> found = pass<double>(unary.op, {x}, dy);
      CHECK(relative_gap(found.y, y) < 1e-15);
      CHECK(relative_gap(found.d[0], dx) < 1e-14);
    }
}

TEMPLATE_TEST_CASE("sigmoid does not overflow", "[ops][elementwise]", float, double) {
  using T = TestType;
  const T inf = std::numeric_limits<T>::infinity();
  const Pass<T> found = pass<T>([](const auto& x) { return sigmoid(x[0]); },
                                {Tensor<T>({5}, {-inf, -1000, 0, 1000, inf})});
  CHECK(same_bits(found.y, Tensor<T>({5}, {0, 0, T(0.5), 1, 1})));
  for (const T d : found.d[0].values()) CHECK(std::isfinite(d));
}

TEST_CASE("at a kink the derivative is 0", "[ops][elementwise]") {
  CHECK(at([](const auto& x) { return relu(x[0]); }, 0).second == 0);
  CHECK(at([](const auto& x) { return abs(x[0]); }, 0).second == 0);
  CHECK(at([](const auto& x) { return abs(x[0]); }, -0.0).second == 0);
  CHECK(at([](const auto& x) { return pow(x[0], 0); }, 0) == std::pair(1.0, 0.0));
}

TEST_CASE("outside its domain an op gives what IEEE 754 says", "[ops][elementwise]") {
  const auto value = [](const Function<double>& f, double x) {
    return f({Tensor<double>({}, {x})}).item();
  };
  const Function<double> logarithm = [](const auto& x) { return log(x[0]); };
  const Function<double> root = [](const auto& x) { return sqrt(x[0]); };
  CHECK(value(logarithm, 0) == -kInf);
  CHECK(std::isnan(value(logarithm, -1)));
  CHECK(std::isnan(value(root, -1)));
  CHECK(at(root, 0) == std::pair(0.0, kInf));
  CHECK(std::isnan(value([](const auto& x) { return pow(x[0], 0.5); }, -4)));
  CHECK(value([](const auto& x) { return pow(x[0], 3); }, -2) == -8);
  CHECK(value([](const auto& x) { return pow(x[0], -1); }, 0) == kInf);
  const Var<double> one = Tensor<double>({}, {1}), zero = Tensor<double>({}, {0});
  CHECK((one / zero).item() == kInf);
  CHECK((-one / zero).item() == -kInf);
  CHECK(std::isnan((zero / zero).item()));
}

TEST_CASE("a NaN stays one through every unary op", "[ops][elementwise]") {
  for (const Unary& unary : kUnaryOps) {
    if (unary.name == "pow 0") continue;  // 1, as std::pow
    CAPTURE(unary.name);
    CHECK(std::isnan(at(unary.op, kNaN).first));
  }
}

TEST_CASE("writing to a copy of a saved result changes no gradient", "[ops][elementwise]") {
  Tape<double> tape;
  const Var<double> a = tape.leaf(Tensor<double>({3}, {1, 2, 3}));
  const Var<double> s = sigmoid(a);
  Tensor<double> alias = s.value();
  REQUIRE(alias.shares(s.value()));
  std::fill_n(alias.data(), 3, 0.0);
  tape.backward(sum(s));
  const Tensor<double> right({3}, {0.1966119, 0.1049936, 0.0451767});
  CHECK(relative_gap(tape.grad(a), right) < 1e-6);
}

TEST_CASE("a loss of small ops sums a bias's gradient over the rows", "[ops][elementwise]") {
  const auto loss = [](const auto& v) { return sum(square(matmul(v[0], v[1]) + v[2])); };
  const Pass<double> found =
      pass<double>(loss,
                   {Tensor<double>::full({2, 3}, 1), Tensor<double>::full({3, 1}, 1),
                    Tensor<double>({1, 3}, {0, 1, 2})},
                   Tensor<double>({}, {1}));
  CHECK(found.y.item() == 100);
  CHECK(same_bits(found.d[1], Tensor<double>::full({3, 1}, 48)));
  CHECK(same_bits(found.d[2], Tensor<double>({1, 3}, {12, 16, 20})));
}
