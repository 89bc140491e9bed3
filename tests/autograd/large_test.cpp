// Checks of what is too large to be looked at in full, or too slow.
#include <chrono>
#include <thread>

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

/// Too many elements for a whole Jacobian.
const Tensor<double> kLarge = random_tensor<double>({64, 32}, 5);

/// c x, element by element; the gradient of each is off by `error`.
template <class Error>
Var<double> scaled(const Var<double>& x, const Tensor<double>& c, Error error) {
  return record("scaled", mul<double>(x.value(), c).value(), {x},
                [c, error](const Tensor<double>& dy, Grads<double>& d) {
                  double* to = d[0]->data();
                  for (Index i = 0; i < c.size(); ++i)
                    to[i] += dy.data()[i] * (c.data()[i] + error(i));
                });
}

/// The seconds that it takes.
template <class F>
double seconds_of(F f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("one wrong element among thousands is found in its record", "[gradcheck]") {
  const Tensor<double> ones = Tensor<double>::full(kLarge.shape(), 1);
  for (const Index element : {0, 701, 1502, 2047}) {
    const auto f = [&](const Vars& v) {
      return tanh(scaled(v[0], ones, [=](Index i) { return i == element ? 0.5 : 0; }));
    };
    const GradReport report = gradcheck(f, {kLarge});
    INFO(describe(report));
    CHECK(report.verdict == Verdict::fail);
    CHECK(report.diagnosis.record.op == "scaled");
    CHECK(report.diagnosis.record.element == element);
    CHECK(report.diagnosis.record.analytic == Approx(1.5 * report.diagnosis.record.numeric));
  }
}

TEST_CASE("a record that is wrong everywhere by little is named by a direction", "[gradcheck]") {
  // Each element is right to what passes of the largest, which a later record makes small.
  Tensor<double> c = Tensor<double>::full(kLarge.shape(), 1), back = c;
  for (Index i = 0; i < c.size(); i += 50) c.data()[i] = 1e4, back.data()[i] = 1e-4;
  const auto f = [&](const Vars& v) {
    return scaled(v[0], c, [](Index) { return 3e-4; }) * Var<double>(back);
  };
  const GradReport report = gradcheck(f, {kLarge});
  INFO(describe(report));
  CHECK(report.verdict == Verdict::fail);
  CHECK(report.diagnosis.record.number == 1);
  CHECK(report.diagnosis.record.op == "scaled");
  CHECK_THAT(report.diagnosis.reason,
             Contains("record 1 (scaled) is wrong along a random direction, but at none of 25"));
}

TEST_CASE("a kink among thousands of elements makes no record wrong", "[gradcheck]") {
  const Tensor<double> ones = Tensor<double>::full(kLarge.shape(), 1);
  const auto f = [&](const Vars& v) {
    return scaled(relu(v[0]), ones, [](Index i) { return i == 99 ? 1 : 0; });
  };
  Tensor<double> x = kLarge;
  x.data()[99] = 1;
  const GradReport report = gradcheck(f, {x});
  INFO(describe(report));
  CHECK(report.diagnosis.record.op == "scaled");
}

TEST_CASE("larger steps and the diagnosis keep to the time, too", "[gradcheck]") {
  const Threads one(1);
  const auto slow = [](auto f) {
    return [f](const Vars& v) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return f(v);
    };
  };
  // 2048 elements, moved six times each, take more than ten seconds.
  const auto wrong = slow([](const Vars& v) {
    return scaled(v[0], Tensor<double>::full(kLarge.shape(), 1), [](Index) { return 1; });
  });
  const auto unclear =
      slow([](const Vars& v) { return v[0] * Var<double>(Tensor<double>({}, {0})); });
  GradReport report;
  CHECK(seconds_of([&] { report = gradcheck(wrong, {kLarge}, {.seconds = 1}); }) < 2);
  INFO(describe(report));
  CHECK(report.verdict == Verdict::fail);
  CHECK(report.diagnosis.fault == Fault::factor);
  CHECK(report.diagnosis.record.op == "scaled");

  Tensor<double> small = kLarge;
  for (double *x = small.data(), *end = x + small.size(); x != end; ++x) *x *= 1e-6;
  CHECK(seconds_of([&] { report = gradcheck(unclear, {small}, {.seconds = 1}); }) < 2);
  CHECK(report.verdict == Verdict::inconclusive);
  CHECK_THAT(report.notes.at(0), Contains("there was no time to try other steps"));
}
