// What the checker demands beside values, and what it says of kinks, float and directions.
#include <cmath>

#include "headwise/autograd/gradcheck.hpp"
#include "headwise/ops/ops.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"

using namespace headwise;
using namespace headwise::test;
using Catch::Matchers::Contains;

namespace {

using Vars = std::vector<Var<double>>;

const Tensor<double> kRuleInput = random_tensor<double>({3, 4}, 5);

/// x + 0 with a backward of one's own.
Function<double> copy_with(Backward<double> backward) {
  return [backward](const Vars& v) {
    return record("copy", v[0].value(), {v[0]},
                  [backward](const Tensor<double>& dy, Grads<double>& d) { backward(dy, d); });
  };
}

/// What const and copy on write do not keep a determined user from.
void overwrite(const Tensor<double>& x, Index i, double value) {
  const_cast<double*>(x.data())[i] = value;
}

std::string problem(const GradReport& report) {
  CHECK(report.verdict == Verdict::fail);
  return report.problems.empty() ? "" : report.problems[0];
}

}  // namespace

TEST_CASE("a right backward has no problems", "[gradcheck]") {
  const GradReport report =
      gradcheck(copy_with([](const auto& dy, auto& d) { d.add(0, dy); }), {kRuleInput});
  CHECK(report.verdict == Verdict::pass);
  CHECK(report.problems.empty());
  CHECK(report.diagnosis.fault == Fault::none);
}

TEST_CASE("a forward pass that is not the same twice is called not deterministic", "[gradcheck]") {
  int calls = 0;
  const auto f = [&](const Vars& v) {
    return v[0] * Var<double>(Tensor<double>({}, {1.0 + 1e-12 * ++calls}));
  };
  CHECK_THAT(problem(gradcheck(f, {kRuleInput})), Contains("not deterministic: two calls"));
  CHECK(gradcheck(f, {kRuleInput}).tensors.empty());  // never a plain wrong gradient
  const auto another_way = [&](const Vars& v) { return ++calls % 2 == 0 ? v[0] : -v[0]; };
  CHECK_THAT(problem(gradcheck(another_way, {kRuleInput})), Contains("takes another way"));
}

TEST_CASE("a random record is found where the result does not show it", "[gradcheck]") {
  Rng rng(3);
  const auto f = [&](const Vars& v) {
    return v[0] + dropout(v[0], 0.5, &rng) * Var<double>(Tensor<double>({}, {0}));
  };
  CHECK_THAT(
      problem(gradcheck(f, {kRuleInput})),
      Contains("two calls with the same inputs give values of record 1 (dropout) that differ"));
}

TEST_CASE("a backward that is not the same twice is called not deterministic", "[gradcheck]") {
  int calls = 0;
  const auto f = copy_with([&](const auto& dy, auto& d) {
    Tensor<double> dx = dy;
    dx.data()[2] *= 1 + 1e-12 * ++calls;
    d.add(0, dx);
  });
  CHECK_THAT(problem(gradcheck(f, {kRuleInput})), Contains("two backward passes"));
  CHECK(gradcheck(f, {kRuleInput}, {.nondet_tol = 1e-6}).verdict == Verdict::pass);
}

TEST_CASE("zero for the result must give zero for the inputs", "[gradcheck]") {
  const auto f = copy_with([](const auto& dy, auto& d) {
    Tensor<double> dx = dy;
    dx.data()[0] += 1e-12;
    d.add(0, dx);
  });
  CHECK_THAT(problem(gradcheck(f, {kRuleInput})),
             Contains("a gradient of zero for the result gives 1e-12 for input 0, element 0"));
}

TEST_CASE("a backward that assigns is found, though nothing else adds", "[gradcheck]") {
  const auto f = copy_with([](const auto& dy, auto& d) { *d[0] = dy; });
  const GradReport report = gradcheck(f, {kRuleInput});
  CHECK_THAT(problem(report), Contains("record 1 (copy) writes over the gradient of input 0"));
  CHECK(report.diagnosis.fault == Fault::accumulation);
  CHECK(report.diagnosis.record.number == 1);
  CHECK(report.diagnosis.record.op == "copy");
}

TEST_CASE("an input that does not come back as it was is found", "[gradcheck]") {
  const auto f = [](const Vars& v) {
    const Var<double> y = square(v[0]);
    overwrite(v[0].value(), 3, 7);
    return y;
  };
  CHECK_THAT(problem(gradcheck(f, {random_tensor<double>({3, 4}, 5)})),
             Contains("input 0 does not come back as it was: element 3 was"));
  const auto g = [](const Vars& v) {
    return record("copy", Tensor<double>(v[0].shape(), v[0].value().values()), {v[0]},
                  [x = v[0].value()](const Tensor<double>& dy, Grads<double>& d) {
                    d.add(0, dy);
                    overwrite(x, 3, 7);
                  });
  };
  CHECK_THAT(problem(gradcheck(g, {random_tensor<double>({3, 4}, 5)})),
             Contains("after the backward pass"));
}

TEST_CASE("a parameter that gets no gradient is named and proves nothing", "[gradcheck]") {
  const Param<double> used{.value = kRuleInput, .grad = {}},
      unused{.value = kRuleInput, .grad = {}};
  const Subject<double> subject{[&](Tape<double>& tape) { return square(tape.use(used)); },
                                {{"used", &used}, {"unused", &unused}}};
  const GradReport report = gradcheck(subject);
  CHECK(report.verdict == Verdict::inconclusive);
  CHECK(report.notes == std::vector<std::string>{
                            "unused: no gradient reaches it: the forward pass does not use it"});
}

TEST_CASE("an input behind a cut graph is named with the record that reads it", "[gradcheck]") {
  const auto f = [](const Vars& v) {
    const Var<double> cut(exp(v[0]).value());  // a constant from here on
    return tanh(cut * v[1]);
  };
  const GradReport report = gradcheck(f, {kRuleInput, random_tensor<double>({3, 4}, 6)});
  CHECK(report.verdict == Verdict::fail);
  CHECK(report.where.starts_with("input 0"));
  CHECK_THAT(report.diagnosis.reason,
             Contains("the graph is cut: record 3 (mul) depends on record 2 (exp)"));
}

TEST_CASE("a backward whose gradient has the broadcast shape is a missing reduction",
          "[gradcheck]") {
  const auto f = [](const Vars& v) {
    return record("add", add<double>(v[0].value(), v[1].value()).value(), {v[0], v[1]},
                  [](const Tensor<double>& dy, Grads<double>& d) {
                    d.add(0, dy);
                    d.add(1, dy);
                  });
  };
  const GradReport report = gradcheck(f, {kRuleInput, random_tensor<double>({4}, 2)});
  CHECK(problem(report) == "backward: gradient (3,4) of input 1 ('leaf') must have its shape (4)");
  CHECK(report.diagnosis.fault == Fault::reduction);
  CHECK(report.diagnosis.record.op == "add");
  CHECK(report.diagnosis.record.input == 1);
}

TEST_CASE("a result that overflows is inconclusive, one that is NaN fails", "[gradcheck]") {
  const auto f = [](const Vars& v) { return exp(v[0]); };
  CHECK(gradcheck(f, {Tensor<double>({2}, {1, 1000})}).verdict == Verdict::inconclusive);
  // Finite at the point, not beside it.
  CHECK(gradcheck(f, {Tensor<double>({}, {709.7825})}).verdict == Verdict::inconclusive);
  CHECK(
      problem(gradcheck([](const Vars& v) { return log(v[0]); }, {Tensor<double>({2}, {1, -1})})) ==
      "the result is NaN at element 1 of (2)");
}

TEST_CASE("near a kink nothing is compared", "[gradcheck]") {  // case 36
  const auto f = [](const Vars& v) { return relu(v[0]); };
  std::vector<double> x(40, 1.0);
  x[0] = 0, x[1] = 1e-4, x[2] = 5e-4, x[3] = -1e-4;
  for (std::size_t i = 4; i < 20; ++i) x[i] = -1;
  const GradReport few = gradcheck(f, {Tensor<double>({40}, x)});
  CHECK(few.verdict == Verdict::pass);
  CHECK(few.skipped == 4);
  CHECK(few.elements == 40);
  CHECK_THAT(few.notes.at(0), Contains("4 of 40 elements not compared: near a kink"));

  const GradReport many = gradcheck(f, {Tensor<double>({5}, {0, 1e-4, 5e-4, 1, -1})});
  CHECK(many.verdict == Verdict::inconclusive);
  CHECK(many.skipped == 3);
  CHECK(many.notes.at(0) == "input 0: 3 of 5 elements are near a kink");

  const auto wrong = [](const Vars& v) {  // a slope of 1.01 at 1 must still fail
    return record("relu", relu<double>(v[0].value()).value(), {v[0]},
                  [x = v[0].value()](const Tensor<double>& dy, Grads<double>& d) {
                    for (Index i = 0; i < x.size(); ++i)
                      d[0]->data()[i] += x.data()[i] > 0 ? 1.01 * dy.data()[i] : 0;
                  });
  };
  const GradReport report = gradcheck(wrong, {Tensor<double>({5}, {0, 1e-4, 5e-4, 1, -1})});
  CHECK(report.verdict == Verdict::fail);
  CHECK(report.where == "input 0, element 3");
  CHECK(report.diagnosis.trend == Trend::wrong);
}

TEST_CASE("float is checked with a step that float can tell", "[gradcheck]") {  // case 33
  const auto line = [](double slope) {
    return [slope](const std::vector<Var<float>>& v) {
      const Tensor<float> y({}, {-0.3512F * v[0].value().item() + 0.5F});
      return record("line", y, {v[0]}, [slope](const Tensor<float>& dy, Grads<float>& d) {
        d.add(0, Tensor<float>({}, {static_cast<float>(slope) * dy.item()}));
      });
    };
  };
  const std::vector<Tensor<float>> x = {Tensor<float>({}, {0.2961F})};
  const GradReport right = gradcheck(line(-0.3512), x);
  CHECK(right.verdict == Verdict::pass);
  CHECK(right.dtype == "f32");
  CHECK(right.step == 5e-3);
  CHECK(right.tolerance == 5e-3);
  CHECK(right.numeric == Approx(-0.3512).epsilon(1e-3));
  CHECK(gradcheck(line(-0.3512 * 1.01), x).verdict == Verdict::fail);
  CHECK_THAT(right.notes.at(0), Contains("in float"));
  const std::string text = describe(gradcheck(line(-0.3512 * 1.01), x));
  for (const char* part :
       {"f32, step 5e-03", "5e-03 passes", "input 0, element 0", "analytic -0.3547"})
    CHECK_THAT(text, Contains(part));
}

TEST_CASE("fast mode compares one direction, and says what it may miss", "[gradcheck]") {
  const auto f = [](const Vars& v) { return softmax(v[0]); };
  const GradReport right = gradcheck(f, {kRuleInput}, {.fast = true});
  CHECK(right.verdict == Verdict::pass);
  CHECK(right.where == "input 0, a random direction");
  CHECK_THAT(right.notes.at(0), Contains("goes unseen with probability"));
  for (const Index element : {0, 5, 11}) {
    const auto wrong = copy_with([=](const auto& dy, auto& d) {
      Tensor<double> dx = dy;
      dx.data()[element] *= 1.001;
      d.add(0, dx);
    });
    // A failure is explained by elements, as without fast mode.
    const GradReport report = gradcheck(wrong, {kRuleInput}, {.fast = true});
    CHECK(report.verdict == Verdict::fail);
    CHECK(report.where == fmt::format("input 0, element {}", element));
    CHECK(report.diagnosis.record.op == "copy");
  }
}

TEST_CASE("the chance of a miss is that of a product of two normal numbers", "[gradcheck]") {
  Rng rng(4);
  const int n = 400000;
  for (const double t : {0.3, 0.03, 0.003}) {
    int missed = 0;
    for (int i = 0; i < n; ++i) missed += std::fabs(rng.normal() * rng.normal()) <= t;
    CHECK(chance_of_miss(1, t) == Approx(missed / static_cast<double>(n)).epsilon(0.06));
  }
  CHECK(chance_of_miss(1, 2) == 1);
}

TEST_CASE("a sample of elements, and no more than the time allows", "[gradcheck]") {
  const auto f = [](const Vars& v) { return tanh(matmul(v[0], v[1])); };
  const std::vector<Tensor<double>> x = {random_tensor<double>({20, 30}, 1),
                                         random_tensor<double>({30, 20}, 2)};
  const GradReport some = gradcheck(f, x, {.sample = 7});
  CHECK(some.verdict == Verdict::pass);
  CHECK(some.elements == 14);
  const GradReport little = gradcheck(f, x, {.seconds = 1e-9});
  CHECK(little.verdict == Verdict::pass);
  CHECK(little.elements >= 2);
  CHECK(little.elements < 1200);
  for (const TensorCheck& t : little.tensors) CHECK(t.elements > 0);
}

TEST_CASE("the report does not depend on the number of threads", "[gradcheck]") {
  const auto f = [](const Vars& v) {
    const Var<double> y = layer_norm(gelu(linear(v[0], v[1])), v[2], {});
    return copy_with([](const auto& dy, auto& d) {
      Tensor<double> dx = dy;
      dx.data()[1] *= 2;
      d.add(0, dx);
    })({y});
  };
  std::vector<std::string> texts;
  for (const int n : {1, 2, 4}) {
    const Threads threads(n);
    texts.push_back(describe(gradcheck(
        f, {kRuleInput, random_tensor<double>({5, 4}, 1), random_tensor<double>({5}, 2)})));
  }
  CHECK(texts[0] == texts[1]);
  CHECK(texts[0] == texts[2]);
  CHECK_THAT(texts[0], Contains("first wrong record: 6 of 7 on the tape, copy of"));
}

TEST_CASE("options that cannot be are refused with their values", "[gradcheck][errors]") {
  const double nan = std::nan("");
  double GradOptions::*numbers[] = {&GradOptions::eps, &GradOptions::rtol, &GradOptions::atol,
                                    &GradOptions::nondet_tol, &GradOptions::seconds};
  for (const auto number : numbers)
    for (const double value : {-1.0, double{HUGE_VAL}, nan}) {
      GradOptions options;
      options.*number = value;
      CAPTURE(value);
      CHECK_THROWS_AS(gradcheck([](const Vars& v) { return v[0]; }, {kRuleInput}, options),
                      UsageError);
    }
  CHECK_THROWS_AS(gradcheck([](const Vars& v) { return v[0]; }, {kRuleInput}, {.sample = -1}),
                  UsageError);
  CHECK_THROWS_WITH(gradcheck([](const Vars& v) { return v[0]; }, {kRuleInput}, {.rtol = HUGE_VAL}),
                    Contains("rtol inf") && Contains("must be finite and not negative"));
}

TEST_CASE("a report says why there was nothing to compare", "[gradcheck]") {
  const auto notes = [](const Function<double>& f, const std::vector<Tensor<double>>& x) {
    const GradReport report = gradcheck(f, x);
    CHECK(report.verdict == Verdict::inconclusive);
    return report.notes;
  };
  using Notes = std::vector<std::string>;
  CHECK(notes([](const Vars&) { return Var<double>(kRuleInput); }, {}) ==
        Notes{"there is nothing to check: the forward pass takes no input and no trainable "
              "parameter from the tape"});
  CHECK(notes([](const Vars& v) { return sum(v[0]); }, {Tensor<double>::zeros({0})}) ==
        Notes{"input 0: it has no elements"});
  CHECK(notes([](const Vars& v) { return square(v[1]); }, {kRuleInput, kRuleInput}) ==
        Notes{"input 0: no gradient reaches it, and the result does not change with it: there is "
              "nothing to prove"});
  const GradReport cut =
      gradcheck([](const Vars& v) { return square(v[1]) + Var<double>(v[0].value()); },
                {kRuleInput, kRuleInput});
  CHECK(cut.verdict == Verdict::fail);
  CHECK(cut.tensors.at(0).note == "no gradient reaches it, but the result changes with it");
}

TEST_CASE("a report tells each note once, and how many elements were looked at", "[gradcheck]") {
  const auto times = [](const std::string& text, const std::string& part) {
    int n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++n;
    return n;
  };
  const GradReport blind =
      gradcheck([](const Vars& v) { return square(v[1]); }, {kRuleInput, kRuleInput});
  CHECK(times(describe(blind), "no gradient reaches it") == 1);
  const Tensor<double> large = random_tensor<double>({100, 100}, 1);
  const GradReport some =
      gradcheck([](const Vars& v) { return tanh(v[0]); }, {large}, {.sample = 12});
  CHECK(some.verdict == Verdict::pass);
  CHECK(some.notes == std::vector<std::string>{"12 of 10000 elements were looked at"});
  CHECK(times(describe(some), "12 of 10000") == 2);  // the table, and the note
}

TEST_CASE("fast mode that could compare nothing proves nothing", "[gradcheck]") {
  const auto wrong = [](const Vars& v) {
    return record("relu", relu<double>(v[0].value()).value(), {v[0]},
                  [x = v[0].value()](const Tensor<double>& dy, Grads<double>& d) {
                    for (Index i = 0; i < x.size(); ++i)
                      d[0]->data()[i] += x.data()[i] > 0 ? 17 * dy.data()[i] : 0;
                  });
  };
  Tensor<double> x = Tensor<double>::full({4, 5}, 1);
  x.data()[3] = 0;
  CHECK(gradcheck(wrong, {x}, {.fast = true}).verdict != Verdict::pass);
}

TEST_CASE("a backward that assigns a gradient of another shape is refused", "[gradcheck]") {
  const auto f = [](const Vars& v) {
    return record("add", add<double>(v[0].value(), v[1].value()).value(), {v[0], v[1]},
                  [](const Tensor<double>& dy, Grads<double>& d) {
                    d.add(0, dy);
                    *d[1] = dy;
                  });
  };
  const GradReport report = gradcheck(f, {kRuleInput, random_tensor<double>({4}, 2)});
  CHECK(problem(report) == "backward: 'add' left a gradient (3,4) for its input 1 of shape (4)");
  CHECK(report.diagnosis.fault == Fault::reduction);
}
