#include "headwise/autograd/tape.hpp"

#include <deque>

#include "headwise/ops/ops.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

Tensor<double> scalar(double x) { return {{}, {x}}; }
Var<double> constant(double x) { return scalar(x); }
Param<double> param(double x) { return {.value = scalar(x), .grad = {}}; }

/// x, recorded with a backward of the test's own.
Var<double> recorded(const Var<double>& x, Backward<double> backward) {
  return record("mine", x.value(), {x}, std::move(backward));
}

/// Passes dy on: what a right backward of the identity does.
void pass_on(const Tensor<double>& dy, Grads<double>& d) { d.add(0, dy); }

}  // namespace

TEST_CASE("the gradients of two tapes add up in a parameter", "[autograd]") {
  const Param<double> t = param(1);
  for (const double factor : {2.0, 3.0}) {
    Tape<double> tape;
    tape.backward(tape.use(t) * constant(factor));
  }
  CHECK(t.grad.item() == 5);
}

TEST_CASE("two uses of a parameter on one tape add up in it", "[autograd]") {
  const Param<double> t = param(3);
  Tape<double> tape;
  tape.backward(tape.use(t) * tape.use(t));
  CHECK(t.grad.item() == 6);
}

TEST_CASE("a second backward is an error and leaves the gradients alone", "[autograd][errors]") {
  const Param<double> t = param(3);
  Tape<double> tape;
  const Var<double> x = tape.use(t), leaf = tape.leaf(scalar(2));
  const Var<double> y = x * x * leaf;
  tape.backward(y);
  CHECK_THROWS_WITH(
      tape.backward(y),
      "backward: this tape was consumed by an earlier backward; run the forward again");
  CHECK_THROWS_AS(tape.backward(y, scalar(1)), Error);
  CHECK(t.grad.item() == 12);
  CHECK(tape.grad(leaf).item() == 9);
}

TEST_CASE("nothing can be recorded on a consumed tape", "[autograd][errors]") {
  const Param<double> t = param(3);
  Tape<double> tape;
  const Var<double> x = tape.use(t);
  tape.backward(x * x);
  CHECK_THROWS_WITH(x * x, "record 'mul': this tape was consumed by its backward; take a new one");
  CHECK_THROWS_WITH(tape.use(t),
                    "record 'param': this tape was consumed by its backward; take a new one");
  CHECK_THROWS_WITH(tape.leaf(scalar(1)),
                    "record 'leaf': this tape was consumed by its backward; take a new one");
}

TEST_CASE("backward refuses what is no scalar loss of its tape", "[autograd][errors]") {
  Tape<double> tape, other;
  const Var<double> x = tape.leaf(random_tensor<double>({2, 3}, 1));
  CHECK_THROWS_WITH(tape.backward(x), "backward: the loss has shape (2,3), not one element");
  CHECK_THROWS_AS(tape.backward(x), ShapeError);
  CHECK_THROWS_WITH(tape.backward(x, random_tensor<double>({3, 2}, 1)),
                    "backward: gradient (3,2) of a result (2,3)");

  const char* const not_here =
      "backward: the result was not recorded on this tape, so nothing has a gradient "
      "(gradients are plain tensors: second derivatives are out of scope)";
  CHECK_THROWS_WITH(tape.backward(constant(1)), not_here);
  CHECK_THROWS_WITH(tape.backward(other.leaf(scalar(1))), not_here);

  tape.backward(sum(x));  // none of the refusals has consumed it
  CHECK(same_bits(tape.grad(x), Tensor<double>::full({2, 3}, 1)));
}

TEST_CASE("a gradient is asked of a leaf of the tape, after backward", "[autograd][errors]") {
  Tape<double> tape, other;
  const Var<double> x = tape.leaf(scalar(2)), unused = tape.leaf(random_tensor<double>({2}, 1));
  const Var<double> y = x * x;
  CHECK_THROWS_WITH(tape.grad(x), "grad: backward has not run yet");
  tape.backward(y);
  CHECK(tape.grad(x).item() == 4);
  CHECK(same_bits(tape.grad(unused), Tensor<double>::zeros({2})));
  const char* const no_leaf = "grad: this is not a leaf of this tape";
  CHECK_THROWS_WITH(tape.grad(y), no_leaf);
  CHECK_THROWS_WITH(tape.grad(constant(1)), no_leaf);
  CHECK_THROWS_WITH(tape.grad(other.leaf(scalar(1))), no_leaf);
}

TEST_CASE("recording while backward runs says that second derivatives are out of scope",
          "[autograd][errors]") {
  Tape<double> tape;
  const Var<double> x = tape.leaf(scalar(3));
  const Var<double> y = recorded(x, [x](const Tensor<double>& dy, Grads<double>& d) {
    d.add(0, mul(x, Var<double>(dy)).value());
  });
  CHECK_THROWS_WITH(tape.backward(y),
                    "record 'mul': this tape is running backward; a gradient is a plain tensor, "
                    "second derivatives are out of scope");
  CHECK_THROWS_WITH(
      tape.backward(y),
      "backward: this tape was consumed by an earlier backward; run the forward again");
  CHECK_THROWS_WITH(x * x, "record 'mul': this tape was consumed by its backward; take a new one");
}

TEST_CASE("ops on constants may be used while backward runs", "[autograd]") {
  Tape<double> tape;
  const Var<double> x = tape.leaf(scalar(3));
  tape.backward(recorded(x, [x = x.value()](const Tensor<double>& dy, Grads<double>& d) {
    d.add(0, mul(Var<double>(dy), Var<double>(x)).value());
  }));
  CHECK(tape.grad(x).item() == 3);
}

TEST_CASE("inputs on two tapes are an error", "[autograd][errors]") {
  Tape<double> one, two;
  const Var<double> x = one.leaf(scalar(1)), y = two.leaf(scalar(1));
  CHECK_THROWS_WITH(x + y, "record 'add': inputs are on two tapes");
  CHECK(one.op_names() == std::vector<std::string>{"leaf"});
}

TEST_CASE("an op that would silently cut the graph cannot be recorded", "[autograd][errors]") {
  Tape<double> tape;
  CHECK_THROWS_WITH(recorded(tape.leaf(scalar(1)), nullptr),
                    "record 'mine': an input needs a gradient, but there is no backward");
  CHECK_FALSE(recorded(constant(1), nullptr).tracked());
}

TEST_CASE("a variable used twice gets both contributions", "[autograd]") {
  Tape<double> tape;
  const Var<double> x = tape.leaf(Tensor<double>({2}, {3, -2}));
  tape.backward(sum(x * x) + sum(x * constant(5)));  // x^2 + 5 x
  CHECK(same_bits(tape.grad(x), Tensor<double>({2}, {11, 1})));
}

TEST_CASE("a product and a plain addition may meet in one gradient", "[autograd]") {
  // linear() asks with into(), embedding and friends with operator[], add() with Grads::add.
  const Var<double> w = random_tensor<double>({4, 4}, 1), g = random_tensor<double>({4}, 2);
  const auto run = [&](bool product_first) {
    Tape<double> tape;
    const Var<double> x = tape.leaf(random_tensor<double>({3, 4}, 3));
    const Var<double> a = product_first ? x * g : linear(x, w);
    const Var<double> b = product_first ? linear(x, w) : x * g;
    tape.backward(sum(a) + sum(b));
    return tape.grad(x);
  };
  Tensor<double> expected = Tensor<double>::uninitialized({3, 4});
  for (Index i = 0; i < 12; ++i) {
    double column = g.value().data()[i % 4];
    for (Index o = 0; o < 4; ++o) column += w.value().data()[o * 4 + i % 4];
    expected.data()[i] = column;
  }
  CHECK(relative_gap(run(true), expected) < 1e-14);
  CHECK(relative_gap(run(false), expected) < 1e-14);
}

TEST_CASE("a contribution of a wrong shape is an error that names it", "[autograd][errors]") {
  Tape<double> tape;
  const Var<double> x = tape.leaf(random_tensor<double>({2, 3}, 1));
  const Var<double> y = recorded(x * constant(2), [](const Tensor<double>&, Grads<double>& d) {
    d.add(0, Tensor<double>::zeros({3, 2}));
  });
  const Tensor<double> dy = Tensor<double>::zeros({2, 3});
  CHECK_THROWS_WITH(tape.backward(y, dy),
                    "backward: gradient (3,2) of input 0 ('mul') must have its shape (2,3)");

  Tape<double> again;
  const Var<double> z = recorded(
      again.leaf(x.value()),
      [](const Tensor<double>&, Grads<double>& d) { d.add(0, Tensor<double>::zeros({6})); });
  CHECK_THROWS_AS(again.backward(z, dy), ShapeError);
}

TEST_CASE("a contribution handed to two inputs stays two gradients", "[autograd]") {
  // add() gives the same tensor to both; a then gets more, which must not reach b.
  Tape<double> tape;
  const Var<double> a = tape.leaf(Tensor<double>({2}, {1, 2}));
  const Var<double> b = tape.leaf(Tensor<double>({2}, {3, 4}));
  const Var<double> first = a * Var<double>(Tensor<double>({2}, {10, 20}));
  const Tensor<double> dy({2}, {1, 1});
  tape.backward((a + b) + first, dy);
  CHECK(same_bits(tape.grad(a), Tensor<double>({2}, {11, 21})));
  CHECK(same_bits(tape.grad(b), Tensor<double>({2}, {1, 1})));
  CHECK(same_bits(dy, Tensor<double>({2}, {1, 1})));
}

TEST_CASE("a contribution the op still holds is not written to", "[autograd]") {
  Tape<double> tape;
  const Tensor<double> held({2}, {1, 1});
  const Var<double> x = tape.leaf(Tensor<double>({2}, {1, 2}));
  const Var<double> early = recorded(x, pass_on);
  const Var<double> late =
      recorded(x, [held](const Tensor<double>&, Grads<double>& d) { d.add(0, held); });
  tape.backward(early + late, Tensor<double>({2}, {5, 5}));
  CHECK(same_bits(tape.grad(x), Tensor<double>({2}, {6, 6})));
  CHECK(same_bits(held, Tensor<double>({2}, {1, 1})));
}

TEST_CASE("a parameter's gradient outlives its tape and is its own", "[autograd]") {
  const Param<double> p = param(1), q = param(1);
  {
    Tape<double> tape;
    tape.backward(tape.use(p) + tape.use(q));
  }
  Tape<double> tape;
  tape.backward(tape.use(p) * constant(4));  // adds to p's, which once shared storage with q's
  CHECK(p.grad.item() == 5);
  CHECK(q.grad.item() == 1);
}

TEST_CASE("a frozen parameter is a constant and gets no gradient", "[autograd]") {
  Param<double> frozen = param(3);
  frozen.trainable = false;
  const Param<double> free = param(2);
  Tape<double> tape;
  const Var<double> f = tape.use(frozen);
  CHECK_FALSE(f.tracked());
  tape.backward(f * tape.use(free));
  CHECK(frozen.grad.empty());
  CHECK(free.grad.item() == 3);
}

TEST_CASE("a tape tells the names of its records in order", "[autograd]") {
  const Param<double> p = param(2);
  Tape<double> tape;
  CHECK(tape.op_names().empty());
  const Var<double> x = tape.leaf(Tensor<double>({2}, {1, 2}));
  const Var<double> y = x * tape.use(p);
  mul(constant(1), constant(2));  // of constants: not recorded
  sum(y);
  CHECK(tape.op_names() == std::vector<std::string>{"leaf", "param", "mul", "sum"});
}

TEST_CASE("the seed scales every gradient", "[autograd]") {
  const Param<double> p = param(3);
  Tape<double> tape;
  const Var<double> x = tape.use(p);
  tape.backward(x * x, 0.5);
  CHECK(p.grad.item() == 3);
}

TEST_CASE("backward may start at any result and passes over later records", "[autograd]") {
  const Param<double> p = param(3);
  Tape<double> tape;
  const Var<double> x = tape.use(p), y = x * x;
  mul(y, constant(100));  // recorded after y, but nothing asks for it
  tape.backward(y);
  CHECK(p.grad.item() == 6);

  Tape<double> other;
  const Var<double> leaf = other.leaf(scalar(1));
  other.backward(leaf);
  CHECK(other.grad(leaf).item() == 1);
}

TEST_CASE("only wanted gradients are asked for", "[autograd]") {
  Tape<double> tape;
  const Var<double> x = tape.leaf(scalar(3)), c = constant(4);
  const Var<double> y =
      record("mine", scalar(12), {x, c}, [](const Tensor<double>& dy, Grads<double>& d) {
        CHECK(d.wants(0));
        CHECK_FALSE(d.wants(1));
        CHECK(d[1] == nullptr);
        CHECK_FALSE(d.into(1));
        d.add(1, Tensor<double>::zeros({7}));  // wanted by nobody, whatever it is
        REQUIRE(d[0] != nullptr);
        CHECK(d[0]->item() == 0);
        d[0]->data()[0] += 4 * dy.item();
        CHECK(d.into(0).beta == 1);
      });
  tape.backward(y);
  CHECK(tape.grad(x).item() == 4);
}

TEST_CASE("propagate keeps the gradients of parameters until they are delivered", "[autograd]") {
  const Param<double> p = param(3), q = param(3);
  Tape<double> one, two;
  one.propagate(one.use(p) * constant(2));
  two.propagate(two.use(q) * two.use(p), 10);
  CHECK(p.grad.empty());
  CHECK(q.grad.empty());
  Tape<double>::deliver({&one, &two});
  CHECK(p.grad.item() == 32);
  CHECK(q.grad.item() == 30);
}

TEST_CASE("gradients are delivered in the order of the tapes", "[autograd]") {
  const auto delivered = [](std::initializer_list<double> gradients) {
    const Param<double> p = param(3);
    std::deque<Tape<double>> tapes;
    std::vector<Tape<double>*> order;
    for (const double g : gradients) {
      Tape<double>& tape = tapes.emplace_back();
      tape.propagate(tape.use(p), g);
      order.push_back(&tape);
    }
    Tape<double>::deliver(order);
    return p.grad.item();
  };
  CHECK(delivered({1e16, -1e16, 1}) == 1);
  CHECK(delivered({1e16, 1, -1e16}) == 0);  // the 1 is too small to be seen beside 1e16
}

TEST_CASE("gradients are delivered once, and only after they were found", "[autograd][errors]") {
  const std::string nothing = "deliver: there are no gradients to deliver";
  const Param<double> p = param(3);
  Tape<double> tape, other;
  const Var<double> y = tape.use(p) * constant(2), z = other.use(p) * constant(5);
  CHECK_THROWS_WITH(Tape<double>::deliver({&tape}), nothing);
  tape.propagate(y);
  CHECK_THROWS_AS(tape.propagate(y), Error);
  Tape<double>::deliver({&tape});
  CHECK_THROWS_WITH(Tape<double>::deliver({&tape}), nothing);
  CHECK_THROWS_AS(tape.propagate(y), Error);
  CHECK(p.grad.item() == 2);
  other.propagate(z);
  CHECK_THROWS_WITH(Tape<double>::deliver({&other, &tape}), nothing);
  CHECK(p.grad.item() == 2);
  Tape<double>::deliver({&other});  // the refusal took nothing away
  CHECK(p.grad.item() == 7);
}

TEST_CASE("a leaf tells its gradient only after delivery", "[autograd][errors]") {
  Tape<double> tape;
  const Var<double> leaf = tape.leaf(scalar(2));
  tape.propagate(leaf * constant(7));
  CHECK_THROWS_AS(tape.grad(leaf), Error);
  Tape<double>::deliver({&tape});
  CHECK(tape.grad(leaf).item() == 7);
}

TEST_CASE("a backward that failed delivers nothing", "[autograd][errors]") {
  const Param<double> reached = param(3), missed = param(4);
  Tape<double> tape;
  const Var<double> broken =
      recorded(tape.use(missed), [](const Tensor<double>&, Grads<double>&) { throw Error("no"); });
  const Var<double> y = broken + tape.use(reached) * constant(2);
  CHECK_THROWS_WITH(tape.propagate(y), "no");
  CHECK_THROWS_AS(Tape<double>::deliver({&tape}), Error);
  CHECK(reached.grad.empty());
  CHECK(missed.grad.empty());
}

TEST_CASE("a parameter that is used twice is one input of its tape", "[autograd]") {
  const Param<double> p = param(3), q = param(3);
  Tape<double> tape;
  const Var<double> first = tape.use(p), other = tape.use(q), again = tape.use(p);
  CHECK(tape.op_names() == std::vector<std::string>{"param", "param"});
  tape.backward(first * other + again * constant(10));
  CHECK(p.grad.item() == 13);
  CHECK(q.grad.item() == 3);
}
