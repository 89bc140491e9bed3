// What proves nothing must not pass, what rounding explains must not fail.
#include "headwise/autograd/gradcheck.hpp"
#include "headwise/ops/ops.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;
using Catch::Matchers::Contains;

namespace {

using Vars = std::vector<Var<double>>;

const Tensor<double> kInput = random_tensor<double>({3, 5}, 5);

/// f with its gradient times a factor.
Function<double> with_gradient_times(double factor, const Function<double>& f) {
  return [=](const Vars& x) {
    const Tensor<double> in = x[0].value();
    return record("spoilt", f({in}).value(), {x[0]},
                  [=](const Tensor<double>& dy, Grads<double>& d) {
                    Tape<double> tape;
                    const Var<double> leaf = tape.leaf(in);
                    tape.backward(f({leaf}), dy);
                    const Var<double> right(tape.grad(leaf));
                    d.add(0, (right * Var<double>(Tensor<double>({}, {factor}))).value());
                  });
  };
}

struct NamedFunction {
  std::string name;
  Function<double> f;
};
/// Functions of rows whose sum does not change with x: zero is the sum's right gradient.
std::vector<NamedFunction> blind_when_summed() {
  return {{"softmax", [](const Vars& x) { return softmax(x[0]); }},
          {"layer_norm", [](const Vars& x) { return layer_norm<double>(x[0], {}, {}); }},
          {"centred", [](const Vars& x) { return x[0] - mean(x[0], {-1}, true); }},
          {"masked_softmax", [](const Vars& x) { return masked_softmax(x[0], causal()); }}};
}

std::string told(const GradReport& report) {
  return fmt::format("{}: {}, analytic {:.9g}, numeric {:.9g}", name_of(report.verdict),
                     report.where, report.analytic, report.numeric);
}

}  // namespace

TEST_CASE("a zero gradient that only a projection on ones would let pass fails", "[gradcheck]") {
  for (const auto& [name, f] : blind_when_summed())
    for (const bool fast : {false, true}) {
      const GradReport report = gradcheck(with_gradient_times(0, f), {kInput}, {.fast = fast});
      INFO(name << ", " << told(report));
      CHECK(report.verdict == Verdict::fail);
    }
}

TEST_CASE("a sum that does not notice its input proves nothing", "[gradcheck]") {
  for (const auto& [name, f] : blind_when_summed()) {
    const auto summed = [g = f](const Vars& x) { return sum(g(x)); };
    CHECK(gradcheck(f, {kInput}).verdict == Verdict::pass);
    for (const double factor : {0.0, 1.0}) {
      const GradReport report = gradcheck(with_gradient_times(factor, summed), {kInput});
      INFO(name << " times " << factor << ", " << told(report));
      CHECK(report.verdict == Verdict::inconclusive);
    }
  }
}

TEST_CASE("one blind input among others is named", "[gradcheck]") {
  // Softmax does not notice a shift of a whole row.
  const auto f = [](const Vars& x) { return softmax(x[0] + x[1]); };
  for (const bool fast : {false, true}) {
    const GradReport report =
        gradcheck(f, {kInput, random_tensor<double>({3, 1}, 6)}, {.fast = fast});
    INFO(told(report));
    CHECK(report.verdict == Verdict::inconclusive);
    CHECK_THAT(report.where, Contains("input 1"));
    CHECK(report.tensors.at(0).verdict == Verdict::pass);
  }
}

TEST_CASE("a small difference of large numbers never fails", "[gradcheck]") {
  const auto number = [](double x) { return Var<double>(Tensor<double>({}, {x})); };
  const std::vector<NamedFunction> all = {
      {"1 - sigmoid", [=](const Vars& x) { return number(1) - sigmoid(x[0]); }},
      {"1 - tanh^2", [=](const Vars& x) { return number(1) - square(tanh(x[0])); }},
      {"log(sigmoid)", [](const Vars& x) { return log(sigmoid(x[0])); }},
      {"x + 1e6 - 1e6", [=](const Vars& x) { return (x[0] + number(1e6)) - number(1e6); }},
      {"loss",
       [](const Vars& x) {
         return cross_entropy(x[0], Ids({2}, {0, 0}));
       }},
      {"log softmax's first column",
       [](const Vars& x) { return slice(log_softmax(x[0]), -1, 0, 1); }},
      {"log of a sum, less the maximum",
       [](const Vars& x) { return log(sum(exp(x[0]), {-1}, true)) - max(x[0], {-1}, true); }}};
  for (const auto& [name, f] : all)
    for (const double first : {1.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 100.0, 300.0}) {
      Tensor<double> x({2, 3}, {0, 0.3, -0.7, 0, -0.2, 0.4});
      x.data()[0] = first, x.data()[3] = first + 2;
      const GradReport report = gradcheck(f, {x});
      INFO(name << " at " << first << ", " << told(report));
      CHECK(report.verdict != Verdict::fail);
    }
}

TEST_CASE("fast mode passes nothing that it did not compare", "[gradcheck]") {
  for (const auto& [name, f] : blind_when_summed()) {
    const GradReport report =
        gradcheck([g = f](const Vars& x) { return sum(g(x)); }, {kInput}, {.fast = true});
    INFO(name << ", " << told(report));
    CHECK(report.verdict == Verdict::inconclusive);
  }
  // A direction through a kink is all there is to compare.
  Tensor<double> x = Tensor<double>::full({20}, 1);
  x.data()[0] = 0;
  const auto f = [](const Vars& v) { return relu(v[0]); };
  for (const double factor : {1.0, 3.0})
    CHECK(gradcheck(with_gradient_times(factor, f), {x}, {.fast = true}).verdict ==
          Verdict::inconclusive);
  CHECK(gradcheck(with_gradient_times(3, f), {x}).verdict == Verdict::fail);
}

TEST_CASE("a wrong gradient fails however small it is", "[gradcheck]") {
  const std::vector<NamedFunction> all = {{"exp(-x)", [](const Vars& x) { return exp(-x[0]); }},
                                          {"x^-3", [](const Vars& x) { return pow(x[0], -3); }},
                                          {"x^-8", [](const Vars& x) { return pow(x[0], -8); }}};
  for (const auto& [name, f] : all)
    for (const double scale : {1.0, 30.0, 100.0, 500.0}) {
      const Tensor<double> x({3}, {scale, 1.01 * scale, 1.02 * scale});
      CHECK(gradcheck(f, {x}).verdict == Verdict::pass);
      for (const double factor : {-1.0, 2.0, 1.01, 1.0001}) {
        const GradReport report = gradcheck(with_gradient_times(factor, f), {x});
        INFO(name << " at " << scale << " times " << factor << ", " << told(report));
        CHECK(report.verdict == Verdict::fail);
      }
    }
}
