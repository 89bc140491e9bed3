// Where a function is not finite, does not take a value, or throws: what is said of it, and that
// nobody is blamed for it.
#include <cmath>
#include <limits>
#include <stdexcept>

#include "headwise/autograd/gradcheck.hpp"
#include "headwise/ops/ops.hpp"
#include "support/catch.hpp"
#include "support/numbers.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;
using Catch::Matchers::Contains;

namespace {

using Vars = std::vector<Var<double>>;

const Function<double> kLog = [](const Vars& v) { return log(v[0]); };
const Function<double> kTwiceTheSlope = [](const Vars& v) {  // of a logarithm
  return record(
      "log", log<double>(v[0].value()).value(), {v[0]},
      [x = v[0].value()](const Tensor<double>& dy, Grads<double>& d) {
        d.add(0, (Var<double>(Tensor<double>({}, {2})) * Var<double>(dy) / Var<double>(x)).value());
      });
};

/// x, unless an element has moved away from where it was, which `odd` decides about.
template <class Odd>
Function<double> odd_when_moved(const Tensor<double>& x, Odd odd) {
  return [x, odd](const Vars& v) {
    Tensor<double> y = v[0].value();
    for (Index i = 0; i < x.size(); ++i)
      if (y.data()[i] != x.data()[i]) odd(y, i);
    return record("copy", y, {v[0]},
                  [](const Tensor<double>& dy, Grads<double>& d) { d.add(0, dy); });
  };
}

/// x with a backward that throws.
template <class E>
Function<double> throwing(E what) {
  return [what](const Vars& v) {
    return record("bad", square<double>(v[0].value()).value(), {v[0]},
                  [what](const Tensor<double>&, Grads<double>&) { throw what; });
  };
}

const Tensor<double> kX = random_tensor<double>({5}, 5);

}  // namespace

TEST_CASE("a step that leaves the domain blames nobody: a smaller one is taken", "[gradcheck]") {
  for (const double least : {1.1e-3, 1e-3, 1.1e-4, 1e-5, 1e-6, 2.3e-7}) {
    const Tensor<double> x({3}, {least, 1.5 * least, 2});
    CAPTURE(least);
    for (const bool fast : {false, true}) {
      const GradReport report = gradcheck(kLog, {x}, {.fast = fast});
      INFO(describe(report));
      CHECK(report.verdict == Verdict::pass);
      CHECK(report.tensors.at(0).step < least);
    }
    CHECK(gradcheck([](const Vars& v) { return sqrt(v[0]); }, {x}).verdict == Verdict::pass);
    const GradReport wrong = gradcheck(kTwiceTheSlope, {x});
    INFO(describe(wrong));
    CHECK(wrong.verdict == Verdict::fail);
    CHECK(wrong.diagnosis.fault == Fault::factor);
    CHECK(wrong.diagnosis.record.op == "log");
  }
}

TEST_CASE("an element that no step suits is inconclusive, with its reason", "[gradcheck]") {
  for (const Index at : {0, 4}) {
    const auto nan = odd_when_moved(kX, [](Tensor<double>& y, Index) { y.data()[0] = kNaN; });
    const auto only = [&](Tensor<double>& y, Index i) {
      if (i == at) y.data()[0] = kNaN;
    };
    const GradReport all = gradcheck(nan, {kX}), one = gradcheck(odd_when_moved(kX, only), {kX});
    INFO(describe(one));
    CHECK(all.verdict == Verdict::inconclusive);
    CHECK(one.verdict == Verdict::inconclusive);
    CHECK(one.where == fmt::format("input 0, element {}", at));
    CHECK(std::isnan(one.numeric));
    CHECK_THAT(one.notes.at(0), Contains(fmt::format("input 0: element {}: the result is NaN one "
                                                     "step away",
                                                     at)));
    CHECK_THAT(all.notes.at(0), Contains("so for 5 of 5"));
  }
  CHECK(
      gradcheck([](const Vars& v) { return sqrt(v[0]); }, {Tensor<double>({2}, {1, 4})}).verdict ==
      Verdict::pass);
}

TEST_CASE("a wrong gradient beside an edge is found, and the edge is not named", "[gradcheck]") {
  const auto f = [](const Vars& v) {  // the square is wrong, not the logarithm
    const Var<double> x = record("copy", square<double>(v[1].value()).value(), {v[1]},
                                 [](const Tensor<double>& dy, Grads<double>& d) { d.add(0, dy); });
    return log(v[0]) + x;
  };
  const GradReport report =
      gradcheck(f, {Tensor<double>({3}, {1e-6, 1, 2}), Tensor<double>({3}, {1, 2, 3})});
  INFO(describe(report));
  CHECK(report.verdict == Verdict::fail);
  CHECK(report.tensors.at(0).verdict == Verdict::pass);
  CHECK(report.diagnosis.record.op == "copy");
}

TEST_CASE("a NaN or an infinity that is put in is named", "[gradcheck]") {
  Tensor<double> nan = kX, infinite = kX;
  nan.data()[4] = kNaN;
  infinite.data()[2] = -kInf;
  const auto f = [](const Vars& v) { return tanh(v[0] * v[1]); };
  CHECK(gradcheck(f, {nan, kX}).problems ==
        std::vector<std::string>{"input 0 is NaN at element 4 of (5)"});
  const GradReport both = gradcheck(f, {nan, infinite});
  CHECK(both.problems == std::vector<std::string>{"input 0 is NaN at element 4 of (5)",
                                                  "input 1 is infinite at element 2 of (5)"});
  CHECK(both.verdict == Verdict::fail);
  CHECK(both.tensors.empty());

  const Param<double> p{.value = nan, .grad = {}};
  Param<double> frozen{.value = nan, .grad = {}};
  frozen.trainable = false;
  for (const Param<double>* one : {&p, &std::as_const(frozen)}) {
    const Subject<double> subject{
        [&](Tape<double>& tape) { return tape.leaf(kX) * tape.use(*one); }, {{"w", one}}};
    CHECK(gradcheck(subject).problems == std::vector<std::string>{"w is NaN at element 4 of (5)"});
  }
}

TEST_CASE("whatever a backward throws is a problem of the report", "[gradcheck]") {
  const GradReport standard = gradcheck(throwing(std::runtime_error("out of ideas")), {kX}),
                   other = gradcheck(throwing(7), {kX});
  CHECK(standard.verdict == Verdict::fail);
  CHECK(standard.problems == std::vector<std::string>{"out of ideas"});
  CHECK(standard.diagnosis.record.op == "bad");
  CHECK(standard.diagnosis.reason == "out of ideas");
  CHECK(other.verdict == Verdict::fail);
  CHECK(other.problems == std::vector<std::string>{"an exception that is no std::exception"});

  const auto for_zero = [](const Vars& v) {
    return record("bad", v[0].value(), {v[0]}, [](const Tensor<double>& dy, Grads<double>& d) {
      if (dy.data()[0] == 0) throw std::logic_error("zero");
      d.add(0, dy);
    });
  };
  CHECK(gradcheck(for_zero, {kX}).problems ==
        std::vector<std::string>{"a gradient of zero for the result: zero"});
}

TEST_CASE("a forward pass that throws once a value has moved is told of", "[gradcheck]") {
  const auto always =
      odd_when_moved(kX, [](Tensor<double>&, Index) { throw std::domain_error("no such value"); });
  const GradReport report = gradcheck(always, {kX});
  INFO(describe(report));
  CHECK(report.verdict == Verdict::inconclusive);
  CHECK_THAT(report.notes.at(0),
             Contains("input 0: element 0: the forward pass throws 'no such value' one step away"));
  CHECK(gradcheck(always, {kX}, {.fast = true}).verdict == Verdict::inconclusive);

  // Below zero alone: smaller steps suit it. A wrong gradient is explained all the same.
  const auto root = [](double factor) {
    return [factor](const Vars& v) {
      for (const double x : v[0].value().values())
        if (x < 0) throw 7;
      return record("root", sqrt<double>(v[0].value()).value(), {v[0]},
                    [x = v[0].value(), factor](const Tensor<double>& dy, Grads<double>& d) {
                      double* to = d[0]->data();
                      for (Index i = 0; i < x.size(); ++i)
                        to[i] += factor * dy.data()[i] / 2 / std::sqrt(x.data()[i]);
                    });
    };
  };
  const Tensor<double> x({3}, {1e-5, 1, 2});
  CHECK(gradcheck(root(1), {x}).verdict == Verdict::pass);
  const GradReport wrong = gradcheck(root(-1), {x});
  INFO(describe(wrong));
  CHECK(wrong.verdict == Verdict::fail);
  CHECK(wrong.diagnosis.fault == Fault::sign);
  CHECK(wrong.diagnosis.record.op == "root");
}

TEST_CASE("a forward pass that throws the second time is not deterministic", "[gradcheck]") {
  int calls = 0;
  const auto f = [&](const Vars& v) {
    if (++calls > 1) throw std::runtime_error("used up");
    return square(v[0]);
  };
  const GradReport report = gradcheck(f, {kX});
  CHECK(report.verdict == Verdict::fail);
  CHECK_THAT(report.problems.at(0), Contains("not deterministic") && Contains("used up"));
}
