// What outlives its tape, and places that a tape does not have.
#include <memory>

#include "headwise/ops/ops.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;

namespace {

/// A result whose tape is gone.
Var<double> orphan() {
  auto tape = std::make_unique<Tape<double>>();
  return square(tape->leaf(Tensor<double>({2}, {3, 4})));
}

}  // namespace

TEST_CASE("a result is readable without its tape, and an op that takes it says what is wrong",
          "[autograd][errors]") {
  const Var<double> y = orphan();
  CHECK(y.tracked());
  CHECK(y.value().values()[1] == 16);
  CHECK_THROWS_WITH(
      y + Var<double>(Tensor<double>({2}, {1, 1})),
      "record 'add': the tape of input 0 was destroyed; its value goes on as a constant "
      "by detach()");
  Tape<double> tape;
  CHECK_THROWS_AS(tape.leaf(Tensor<double>({2}, {1, 1})) * y, Error);
  CHECK_THROWS_AS(tape.backward(y, Tensor<double>({2}, {1, 1})), Error);
  CHECK_THROWS_AS(tape.grad(y), Error);
  CHECK(tape.place(y) == -1);
}

TEST_CASE("a new tape at the address of an old one is another tape", "[autograd][errors]") {
  alignas(Tape<double>) std::byte room[sizeof(Tape<double>)];
  auto* first = new (room) Tape<double>;
  const Var<double> x = first->leaf(Tensor<double>({1}, {2}));
  first->~Tape<double>();
  auto* second = new (room) Tape<double>;
  const Var<double> z = second->leaf(Tensor<double>({1}, {5}));
  CHECK_THROWS_AS(x * z, Error);
  CHECK(second->place(x) == -1);
  CHECK(second->place(z) == 0);
  second->~Tape<double>();
}

TEST_CASE("a detached result is a constant on any tape", "[autograd]") {
  const Var<double> constant = orphan().detach();
  CHECK_FALSE(constant.tracked());
  Tape<double> tape;
  const Var<double> x = tape.leaf(Tensor<double>({2}, {1, 2}));
  const Var<double> y = x * constant, cut = square(x).detach();
  CHECK_FALSE(cut.tracked());
  tape.backward(sum(y + cut * x));
  const Tensor<double> dx = tape.grad(x);
  CHECK(dx.values()[0] == 9 + 1);  // d (9 x + x^2 x) / dx with x^2 held
  CHECK(dx.values()[1] == 16 + 4);
}

TEST_CASE("a tape has no other places than its own", "[autograd][errors]") {
  Tape<double> tape;
  const Var<double> x = tape.leaf(Tensor<double>({2}, {1, 2})), y = square(x);
  const Tensor<double> dy({2}, {1, 1});
  for (const Index place : {-1, 2, 99}) {
    CHECK_THROWS_WITH(tape.entry(place), fmt::format("tape: no place {} among 2", place));
    CHECK_THROWS_AS(tape.pull(place, dy), Error);
  }
  CHECK_THROWS_WITH(tape.pull(1, Tensor<double>({3}, {1, 1, 1})),
                    "pull: gradient (3) of 'square' of shape (2)");
  CHECK_THROWS_WITH(tape.pull(1, dy, {{}, {}}), "pull: 2 gradients for the 1 inputs of 'square'");
  CHECK_THROWS_WITH(tape.pull(1, dy, {Tensor<double>({1}, {1})}),
                    "pull: gradient (1) for input 0 of 'square' of shape (2)");
  CHECK(tape.pull(1, dy)[0].values()[1] == 4);

  Tape<double> other;
  other.propagate(sum(other.leaf(dy)));
  CHECK_THROWS_AS(other.gradient_at(-1), Error);
  CHECK_THROWS_AS(other.gradient_at(2), Error);
}

TEST_CASE("a backward that asks for an input it does not have is told so", "[autograd][errors]") {
  using Asks = void (*)(Grads<double>&);
  const Asks ways[] = {[](Grads<double>& d) {
                         d.add(1, Tensor<double>({2}, {1, 1}));
                       },
                       [](Grads<double>& d) { d[1]; }, [](Grads<double>& d) { d.into(-1); },
                       [](Grads<double>& d) { (void)d.wants(7); }};
  for (const Asks ask : ways) {
    Tape<double> tape;
    const Var<double> x = tape.leaf(Tensor<double>({2}, {1, 2}));
    const Var<double> y =
        record("mine", x.value(), {x}, [ask](const Tensor<double>&, Grads<double>& d) { ask(d); });
    CHECK_THROWS_AS(tape.backward(sum(y)), Error);
  }
  Tape<double> tape;
  const Var<double> x = tape.leaf(Tensor<double>({2}, {1, 2}));
  const Var<double> y = record("mine", x.value(), {x},
                               [](const Tensor<double>& dy, Grads<double>& d) { d.add(1, dy); });
  CHECK_THROWS_WITH(tape.backward(sum(y)),
                    "backward: 'mine' asks for the gradient of input 1 of 1");
}
