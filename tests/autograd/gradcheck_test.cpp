// The checker itself: it passes what is right, fails what is wrong and says where.
#include "headwise/autograd/gradcheck.hpp"

#include <cmath>
#include <limits>

#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

using Vars = std::vector<Var<double>>;

Tensor<double> scaled(const Shape& shape, std::uint64_t seed, double scale) {
  Tensor<double> x = random_tensor<double>(shape, seed);
  double* out = x.data();
  for (Index i = 0; i < x.size(); ++i) out[i] *= scale;
  return x;
}

/// What the test's cube x^3 does to its right gradient g before it hands it on.
using Spoil = std::function<void(Tensor<double>& g)>;

/// x^3, element by element, with a spoilt gradient.
Function<double> cube(Spoil spoil) {
  return [spoil](const Vars& v) {
    const Tensor<double> x = v[0].value();
    Tensor<double> y = Tensor<double>::uninitialized(x.shape());
    double* out = y.data();
    for (Index i = 0; i < x.size(); ++i) out[i] = std::pow(x.data()[i], 3);
    return record("cube", y, {v[0]}, [x, spoil](const Tensor<double>& dy, Grads<double>& d) {
      Tensor<double> g = Tensor<double>::uninitialized(x.shape());
      double* to = g.data();
      for (Index i = 0; i < g.size(); ++i) to[i] = 3 * x.data()[i] * x.data()[i] * dy.data()[i];
      spoil(g);
      d.add(0, g);
    });
  };
}

/// sin(f x), element by element.
Function<double> wave(double f) {
  return [f](const Vars& v) {
    const Tensor<double> x = v[0].value();
    Tensor<double> y = Tensor<double>::uninitialized(x.shape());
    double* out = y.data();
    for (Index i = 0; i < x.size(); ++i) out[i] = std::sin(f * x.data()[i]);
    return record("wave", y, {v[0]}, [x, f](const Tensor<double>& dy, Grads<double>& d) {
      double* dx = d[0]->data();
      for (Index i = 0; i < x.size(); ++i) dx[i] += dy.data()[i] * f * std::cos(f * x.data()[i]);
    });
  };
}

const Tensor<double> kSquareInput = random_tensor<double>({3, 3}, 5);

}  // namespace

TEST_CASE("right gradients pass at every scale", "[gradcheck]") {
  for (const double scale : {1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3}) {
    const Tensor<double> x = scaled({2, 5}, 1, scale), y = scaled({5}, 2, scale);
    CAPTURE(scale);
    for (const GradReport& report :
         {gradcheck([](const Vars& v) { return mul(v[0], v[0]); }, {x}),
          gradcheck([](const Vars& v) { return mul(v[0], v[1]); }, {x, y}),
          gradcheck(cube([](Tensor<double>&) {}), {x}),
          // Curved on the input's own scale where that is small, on a scale of one where it is not.
          gradcheck(wave(std::max(1.0, 1 / scale)), {x})}) {
      INFO(report.where);
      CHECK(report.verdict == Verdict::pass);
      CHECK(report.worst <= 2e-9);
    }
  }
}

TEST_CASE("the report counts the elements of every input", "[gradcheck]") {
  const GradReport report =
      gradcheck([](const Vars& v) { return mul(v[0], v[1]); },
                {random_tensor<double>({2, 5}, 1), random_tensor<double>({5}, 2)});
  CHECK(report.elements == 15);
}

TEST_CASE("wrong gradients fail at every scale", "[gradcheck]") {
  const std::vector<std::pair<std::string, Spoil>> planted = {
      {"one per cent too large",
       [](auto& g) {
         for (Index i = 0; i < 9; ++i) g.data()[i] *= 1.01;
       }},
      {"wrong sign",
       [](auto& g) {
         for (Index i = 0; i < 9; ++i) g.data()[i] *= -1;
       }},
      {"missing", [](auto& g) { g = Tensor<double>::zeros(g.shape()); }},
      {"one element a part in a million off", [](auto& g) { g.data()[4] *= 1 + 1e-6; }},
      {"one element left out", [](auto& g) { g.data()[4] = 0; }},
      {"transposed",
       [](auto& g) {
         const Tensor<double> right = g;
         for (Index i = 0; i < 9; ++i) g.data()[i] = right.data()[i % 3 * 3 + i / 3];
       }},
  };
  for (const auto& [name, spoil] : planted)
    for (const double scale : {1e-3, 1.0, 1e3}) {
      CAPTURE(name, scale);
      // All of one size: a part of a million of a small element would drown in the largest.
      Tensor<double> x = random_tensor<double>({3, 3}, 5);
      for (Index i = 0; i < 9; ++i) x.data()[i] = scale * (1 + 0.1 * std::tanh(x.data()[i]));
      const GradReport report = gradcheck(cube(spoil), {x});
      CHECK(report.verdict == Verdict::fail);
      CHECK(report.worst > kGradTolerance);
    }
}

TEST_CASE("a dropped term of a sum of two fails", "[gradcheck]") {
  // y = x^2 + x, whose derivative forgets the 1.
  const auto f = [](const Vars& v) {
    const Tensor<double> y = add(mul(v[0], v[0]), v[0]).value();
    return record("square and more", y, {v[0]},
                  [x = v[0].value()](const Tensor<double>& dy, Grads<double>& d) {
                    d.add(0, mul<double>(mul<double>(x, dy), Tensor<double>({}, {2})).value());
                  });
  };
  // On constants the sum above records nothing, on a leaf it must not either: take its value.
  CHECK(gradcheck(f, {kSquareInput}).verdict == Verdict::fail);
}

TEST_CASE("a failure names the input, the element and both values", "[gradcheck]") {
  const Tensor<double> a = random_tensor<double>({2, 3}, 1), b = random_tensor<double>({3}, 2);
  const auto f = [](const Vars& v) {
    return record("mul", mul(v[0], v[1]).value(), {v[0], v[1]},
                  [a = v[0].value(), b = v[1].value()](const Tensor<double>& dy, auto& d) {
                    d.add(0, mul<double>(dy, b).value());
                    double* db = d[1]->data();
                    for (Index i = 0; i < 6; ++i)
                      db[i % 3] += dy.data()[i] * a.data()[i] * (i % 3 == 2 ? 1.01 : 1);
                  });
  };
  const GradReport report = gradcheck(f, {a, b});
  CHECK(report.verdict == Verdict::fail);
  CHECK(report.where == "input 1, element 2");
  const Tensor<double> w = projection({2, 3});
  const double right = w.data()[2] * a.data()[2] + w.data()[5] * a.data()[5];
  CHECK(report.numeric == Approx(right).epsilon(1e-9));
  CHECK(report.analytic == Approx(1.01 * right).epsilon(1e-9));
  CHECK(report.elements == 9);
}

TEST_CASE("one wrong input among right ones fails, wherever it stands", "[gradcheck]") {
  for (const Index wrong : {0, 1, 2}) {
    CAPTURE(wrong);
    const auto f = [wrong](const Vars& v) {
      const Tensor<double> y = add(add(v[0], v[1]), v[2]).value();
      return record("add", y, {v[0], v[1], v[2]}, [wrong](const Tensor<double>& dy, auto& d) {
        for (Index i = 0; i < 3; ++i)
          d.add(i, i == wrong ? mul<double>(dy, Tensor<double>({}, {-1})).value() : dy);
      });
    };
    const GradReport report = gradcheck(f, {kSquareInput, kSquareInput, kSquareInput});
    CHECK(report.verdict == Verdict::fail);
    CHECK(report.where.substr(0, 7) == fmt::format("input {}", wrong));
  }
}

TEST_CASE("a NaN in a gradient or a result fails", "[gradcheck]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Index at : {0, 4, 8}) {
    CAPTURE(at);
    const GradReport analytic =
        gradcheck(cube([&](auto& g) { g.data()[at] = nan; }), {kSquareInput});
    CHECK(analytic.verdict == Verdict::fail);
    CHECK(analytic.where == fmt::format("input 0, element {}", at));
    CHECK(std::isnan(analytic.analytic));
    CHECK_FALSE(analytic.worst <= kGradTolerance);
  }
  CHECK(gradcheck(cube([&](auto& g) {
                    g = Tensor<double>::full({3, 3}, nan);
                  }),
                  {kSquareInput})
            .verdict == Verdict::fail);
  CHECK(gradcheck([&](const Vars& v) { return mul<double>(v[0], Tensor<double>({}, {nan})); },
                  {kSquareInput})
            .verdict == Verdict::fail);
}

TEST_CASE("an infinite gradient fails", "[gradcheck]") {
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(gradcheck(cube([&](auto& g) { g.data()[1] = inf; }), {kSquareInput}).verdict ==
        Verdict::fail);
}

TEST_CASE("a function blind to its input is inconclusive, never a pass", "[gradcheck]") {
  const Tensor<double> c = random_tensor<double>({2}, 9);
  const auto constant = [&](const Vars&) { return Var<double>(c); };
  const auto zero_slope = [](const Vars& v) {  // 1 + 0 x
    return add<double>(mul<double>(v[0], Tensor<double>({}, {0})), Tensor<double>({}, {1}));
  };
  const auto always_zero = [](const Vars& v) { return sub(v[0], v[0]); };
  CHECK(gradcheck(constant, {kSquareInput}).verdict == Verdict::inconclusive);
  CHECK(gradcheck(zero_slope, {kSquareInput}).verdict == Verdict::inconclusive);
  CHECK(gradcheck(always_zero, {kSquareInput}).verdict == Verdict::inconclusive);
  CHECK(gradcheck(constant, {}).verdict == Verdict::inconclusive);
  CHECK(gradcheck([](const Vars& v) { return sum(v[0]); }, {Tensor<double>::zeros({0})}).verdict ==
        Verdict::inconclusive);
}

TEST_CASE("an input that proves nothing is not hidden by one that passes", "[gradcheck]") {
  const auto first_only = [](const Vars& v) {
    return add<double>(v[0], mul<double>(v[1], Tensor<double>({}, {0})));
  };
  const GradReport report = gradcheck(first_only, {kSquareInput, kSquareInput});
  CHECK(report.verdict == Verdict::inconclusive);
  CHECK(report.where.substr(0, 7) == "input 1");
}

TEST_CASE("a gradient below what rounding allows is inconclusive", "[gradcheck]") {
  // 1e9 + x: the digits of x are lost in the result.
  const auto f = [](const Vars& v) { return add<double>(v[0], Tensor<double>({}, {1e9})); };
  CHECK(gradcheck(f, {kSquareInput}).verdict == Verdict::inconclusive);
}

TEST_CASE("a result cut off from a tape that matters fails", "[gradcheck]") {
  // The value depends on x, but the op returned a constant.
  const auto cut = [](const Vars& v) { return Var<double>(mul(v[0], v[0]).value()); };
  const GradReport report = gradcheck(cut, {kSquareInput});
  CHECK(report.verdict == Verdict::fail);
  CHECK(report.analytic == 0);
}

TEST_CASE("a result whose shape depends on the input fails", "[gradcheck]") {
  const auto f = [](const Vars& v) {
    const Index n = v[0].value().data()[0] > kSquareInput.data()[0] ? 2 : 3;
    return record("odd", Tensor<double>::zeros({n}), {v[0]},
                  [](const Tensor<double>&, Grads<double>& d) {
                    d.add(0, Tensor<double>::zeros(kSquareInput.shape()));
                  });
  };
  const GradReport report = gradcheck(f, {kSquareInput});
  CHECK(report.verdict == Verdict::fail);
  CHECK(report.tensors.at(0).note == "the result's shape, (3) here, changes when it moves");
}

TEST_CASE("the checker leaves the inputs and their aliases alone", "[gradcheck]") {
  const Tensor<double> x = random_tensor<double>({2, 2}, 3), alias = x.reshape({4});
  const Tensor<double> before({2, 2}, x.values());
  // Both inputs are one storage: moving the first must not move the second.
  const GradReport report =
      gradcheck([](const Vars& v) { return mul(v[0], v[1]); }, {x, alias.reshape({2, 2})});
  CHECK(report.verdict == Verdict::pass);
  CHECK(same_bits(x, before));

  // An identity returns the perturbed tensor itself.
  CHECK(gradcheck([](const Vars& v) { return v[0]; }, {x}).verdict == Verdict::pass);
  CHECK(same_bits(x, before));
}

TEST_CASE("a parameter is named, and stays as it was", "[gradcheck]") {
  Param<double> w{.value = random_tensor<double>({3}, 3), .grad = {}};
  const Tensor<double> before({3}, w.value.values());
  for (const double factor : {2.0, 2.02}) {
    const Subject<double> subject{
        [&](Tape<double>& tape) {
          const Var<double> x = tape.use(w);
          return record("square", mul<double>(x.value(), x.value()).value(), {x},
                        [x = x.value(), factor](const Tensor<double>& dy, Grads<double>& d) {
                          for (Index i = 0; i < 3; ++i)
                            d[0]->data()[i] += factor * x.data()[i] * dy.data()[i];
                        });
        },
        {{"weight", &w}}};
    const GradReport report = gradcheck(subject);
    CHECK(report.verdict == (factor == 2 ? Verdict::pass : Verdict::fail));
    CHECK(report.where.starts_with("weight, element "));
    CHECK(same_bits(w.value, before));
    CHECK(w.grad.empty());
  }
}

TEST_CASE("a wrong derivative planted in an op's case is caught", "[gradcheck][ops]") {
  const OpSpec planted{
      "softplus", {op_case("matrix", {{3, 5}}, any, [](auto& x) {
        using T = std::remove_cvref_t<decltype(x[0].item())>;
        const Tensor<T> in = x[0].value();
        Tensor<T> y = Tensor<T>::uninitialized(in.shape());
        T* out = y.data();
        for (Index i = 0; i < y.size(); ++i) out[i] = std::log1p(std::exp(in.data()[i]));
        return record("softplus", y, {x[0]}, [in](const Tensor<T>& dy, Grads<T>& d) {
          T* dx = d[0]->data();  // tanh where the derivative is the logistic function
          for (Index i = 0; i < dy.size(); ++i) dx[i] += dy.data()[i] * std::tanh(in.data()[i]);
        });
      })}};
  for (const OpCase& c : planted.cases)
    CHECK(gradcheck(c.f64, random_inputs(c)).verdict == Verdict::fail);
}

TEST_CASE("verdicts have names", "[gradcheck]") {
  CHECK(name_of(Verdict::pass) == "pass");
  CHECK(name_of(Verdict::fail) == "fail");
  CHECK(name_of(Verdict::inconclusive) == "inconclusive");
}
