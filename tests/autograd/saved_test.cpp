// What an op saved for its backward does not change, whoever writes to the tensor it came from.
#include <cmath>

#include "headwise/ops/ops.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

/// 1 / (1 + exp(-x)), with the result saved: its derivative is y (1 - y).
Var<double> sigmoid(const Var<double>& x) {
  Tensor<double> y = Tensor<double>::uninitialized(x.shape());
  double* out = y.data();
  for (Index i = 0; i < y.size(); ++i) out[i] = 1 / (1 + std::exp(-x.value().data()[i]));
  return record("sigmoid", y, {x}, [y](const Tensor<double>& dy, Grads<double>& d) {
    if (!d.wants(0)) return;
    double* dx = d[0]->data();
    for (Index i = 0; i < dy.size(); ++i) dx[i] += dy.data()[i] * y.data()[i] * (1 - y.data()[i]);
  });
}

void zero(Tensor<double>& x) {
  double* out = x.data();
  for (Index i = 0; i < x.size(); ++i) out[i] = 0;
}

const Tensor<double> kTrue({3}, {0.1966119332, 0.1049935854, 0.0451766597});

}  // namespace

TEST_CASE("zeroing a saved result through another handle keeps the true gradient", "[autograd]") {
  Tape<double> tape;
  const Var<double> a = tape.leaf(Tensor<double>({3}, {1, 2, 3}));
  const Var<double> s = sigmoid(a);
  const Var<double> loss = sum(s);
  Tensor<double> copy = s.value(), view = s.value().reshape({3, 1});
  zero(copy);
  zero(view);
  CHECK(s.value().data()[0] == Approx(0.7310585786));
  tape.backward(loss);
  CHECK(relative_gap(tape.grad(a), kTrue) < 1e-8);
}

TEST_CASE("zeroing the input of an op keeps the true gradient", "[autograd]") {
  Tensor<double> x({3}, {1, 2, 3});
  Tape<double> tape;
  const Var<double> a = tape.leaf(x);
  const Var<double> loss = sum(sigmoid(a) * a);
  zero(x);
  tape.backward(loss);
  const Tensor<double> s({3}, {0.7310585786, 0.8807970780, 0.9525741268});
  Tensor<double> expected = s;  // s + a s (1 - s)
  for (Index i = 0; i < 3; ++i) expected.data()[i] += static_cast<double>(i + 1) * kTrue.data()[i];
  CHECK(relative_gap(tape.grad(a), expected) < 1e-8);
}

TEST_CASE("stepping a parameter between forward and backward keeps the true gradient",
          "[autograd]") {
  Param<double> w{.value = random_tensor<double>({4, 3}, 1), .grad = {}};
  const Tensor<double> before = w.value, x = random_tensor<double>({2, 3}, 2);
  const auto gradient = [&](bool step) {
    w.value = before;
    Tape<double> tape;
    const Var<double> in = tape.leaf(x);
    const Var<double> y = linear(in, tape.use(w));
    const Var<double> loss = sum(y * y);
    if (step) zero(w.value);
    tape.backward(loss);
    return tape.grad(in);
  };
  const Tensor<double> plain = gradient(false);
  CHECK(same_bits(gradient(true), plain));
  CHECK(w.value.data()[0] == 0);
}
