// What a tape measures when it is given a profile.
#include "headwise/autograd/profile.hpp"

#include "headwise/ops/ops.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

constexpr Index kRows = 30, kIn = 20, kOut = 50;

/// Gradients of two layers on a tape with that profile.
template <Real T>
std::vector<Tensor<T>> gradients(Profile* profile) {
  const Param<T> w{.value = random_tensor<T>({kOut, kIn}, 1), .grad = {}};
  Tape<T> tape(profile);
  const Var<T> x = tape.leaf(random_tensor<T>({kRows, kIn}, 2));
  const Var<T> fixed = random_tensor<T>({kIn, kOut}, 3);
  tape.backward(sum(linear(linear(x, tape.use(w)), fixed)));
  return {tape.grad(x), w.grad};
}

}  // namespace

TEMPLATE_TEST_CASE("a profile counts each op's calls, operations and bytes", "[autograd][profile]",
                   float, double) {
  using T = TestType;
  Profile profile;
  gradients<T>(&profile);
  CHECK(profile.rows().size() == 2);  // inputs and constants cost nothing
  const auto& [forward, backward] = profile.rows().at("linear");
  CHECK(forward.calls == 2);
  CHECK(backward.calls == 2);
  // Two products of (rows,O) and C terms each; back, one for each factor.
  CHECK(forward.flops == 2 * 2.0 * kRows * kOut * kIn);
  CHECK(backward.flops == 2 * forward.flops);
  // The layers read x, w and hidden, fixed and write hidden and y. Back they read all of that but
  // the results, read dy instead, and write a gradient for each input but the fixed one.
  constexpr Index kX = kRows * kIn, kW = kIn * kOut, kHidden = kRows * kOut, kY = kX;
  CHECK(forward.bytes == sizeof(T) * double(kX + kW + kHidden + kHidden + kW + kY));
  CHECK(backward.bytes == sizeof(T) * double(2 * kX + 2 * kW + kHidden + 2 * kHidden + kW + kY));
  CHECK(forward.seconds > 0);
  CHECK(backward.seconds > 0);
  CHECK(profile.rows().at("sum").forward.flops == 0);
}

TEMPLATE_TEST_CASE("being measured changes no bit", "[autograd][profile]", float, double) {
  Profile profile;
  const auto measured = gradients<TestType>(&profile), plain = gradients<TestType>(nullptr);
  for (std::size_t i = 0; i < plain.size(); ++i) CHECK(same_bits(measured[i], plain[i]));
}

TEST_CASE("merging profiles adds costs and takes a share of the seconds", "[autograd][profile]") {
  Profile all, part;
  all.forward("a", {.calls = 1, .seconds = 2, .flops = 3, .bytes = 4});
  part.forward("a", {.calls = 10, .seconds = 20, .flops = 30, .bytes = 40});
  part.backward("b", {.calls = 5, .seconds = 6, .flops = 7, .bytes = 8});
  all.merge(part, 0.5);
  const Cost a = all.rows().at("a").forward, b = all.rows().at("b").backward;
  CHECK(a.calls == 11);
  CHECK(a.seconds == 12);
  CHECK(a.flops == 33);
  CHECK(a.bytes == 44);
  CHECK(b.calls == 5);
  CHECK(b.seconds == 3);
  CHECK(b.flops == 7);
  CHECK(b.bytes == 8);
  CHECK(all.rows().at("b").forward.calls == 0);
  CHECK(part.rows().at("a").forward.seconds == 20);
}
