// Watching and replacing the pattern of attention().
#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/plain_attention.hpp"
#include "support/taps.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

/// Sizes with several blocks of rows: 70 queries come as 64 and 6.
constexpr Index kBatch = 2, kTime = 70, kHeads = 2, kWidth = 6, kKeys = 75;

template <Real T>
std::vector<Tensor<T>> inputs(Index keys = kTime) {
  return {random_tensor<T>({kBatch, kTime, kWidth}, 1), random_tensor<T>({kBatch, keys, kWidth}, 2),
          random_tensor<T>({kBatch, keys, kWidth}, 3)};
}

template <Real T>
Pass<T> attend(const std::vector<Tensor<T>>& x, Attend<T> how, PatternTap<T>* tap,
               std::uint64_t seed = 5) {
  how.heads = kHeads;
  how.tap = tap;
  Rng rng(seed);
  if (how.dropout > 0) how.random = &rng;
  return pass<T>([&](const auto& v) { return attention(v[0], v[1], v[2], how); }, x);
}

template <Real T>
std::vector<Attend<T>> ways(Index keys = kTime) {
  return {{.mask = causal()},
          {.mask = everything()},
          {.mask = allow(kTime, keys, [](Index t, Index s) { return (t + s) % 3 != 0; })},
          {.mask = causal(), .dropout = 0.2},
          {.mask = allow(kTime, keys, [](Index t, Index s) { return s <= t && s > t - 20; }),
           .dropout = 0.2}};
}

}  // namespace

TEMPLATE_TEST_CASE("watching the pattern changes no bit of result and gradients",
                   "[ops][attention]", float, double) {
  using T = TestType;
  for (const Index keys : {kTime, kKeys})
    for (const Attend<T>& how : ways<T>(keys)) {
      KeepPattern<T> tap;
      const Pass<T> plain = attend<T>(inputs<T>(keys), how, nullptr);
      const Pass<T> watched = attend<T>(inputs<T>(keys), how, &tap);
      CHECK(tap.pattern.shape() == Shape{kBatch, kHeads, kTime, keys});
      CHECK(same_bits(watched.y, plain.y));
      for (std::size_t i = 0; i < 3; ++i) CHECK(same_bits(watched.d[i], plain.d[i]));
    }
}

TEMPLATE_TEST_CASE("replacing a pattern by itself changes no bit of the result", "[ops][attention]",
                   float, double) {
  using T = TestType;
  for (const Index keys : {kTime, kKeys})
    for (const Attend<T>& how : ways<T>(keys)) {
      ReplacePattern<T> same([](Tensor<T>& p) { p = Tensor<T>(p.shape(), p.values()); });
      const Pass<T> plain = attend<T>(inputs<T>(keys), how, nullptr);
      const Pass<T> replaced = attend<T>(inputs<T>(keys), how, &same);
      CHECK(same_bits(replaced.y, plain.y));
      CHECK(same_bits(replaced.d[2], plain.d[2]));
    }
}

TEMPLATE_TEST_CASE("a replaced pattern sends its gradient to v alone", "[ops][attention]", float,
                   double) {
  using T = TestType;
  const std::vector<Tensor<T>> x = inputs<T>(kKeys);
  PlainAttention plain;
  ReplacePattern<T> shift([&](Tensor<T>& p) {  // each query looks where the next key is
    const Tensor<T> old = p;
    T* out = p.data();
    for (Index i = 0; i < p.size(); ++i) out[i] = i % kKeys == 0 ? T(0) : old.data()[i - 1];
    plain.pattern = as<double>(p);
  });
  const Pass<T> found = attend<T>(x, {.mask = everything()}, &shift);
  const PlainSizes n{kBatch, kTime, kKeys, kHeads, kHeads, kWidth / kHeads, kWidth / kHeads, 1};
  plain_apply(n, as<double>(x[2]).data(), projection(found.y.shape()).data(), plain);
  const double close = std::same_as<T, double> ? 1e-12 : 1e-6;
  CHECK(relative_gap(found.y, plain.y) < close);
  CHECK(relative_gap(found.d[2], plain.dv) < close);
  CHECK(same_bits(found.d[0], Tensor<T>::zeros(x[0].shape())));
  CHECK(same_bits(found.d[1], Tensor<T>::zeros(x[1].shape())));
}

TEMPLATE_TEST_CASE("a replaced pattern is used as it is, whatever the mask was", "[ops][attention]",
                   float, double) {
  using T = TestType;
  // Looking at all keys alike, also at those a causal query could not see: every row of the result
  // is the mean of v, in the first block of rows as in the last.
  const std::vector<Tensor<T>> x = inputs<T>();
  PlainAttention plain;
  ReplacePattern<T> uniform([&](Tensor<T>& p) {
    p = Tensor<T>::full(p.shape(), T(1) / kTime);
    plain.pattern = as<double>(p);
  });
  const Pass<T> found = attend<T>(x, {.mask = causal()}, &uniform);
  const PlainSizes n{kBatch, kTime, kTime, kHeads, kHeads, kWidth / kHeads, kWidth / kHeads, 1};
  plain_apply(n, as<double>(x[2]).data(), projection(found.y.shape()).data(), plain);
  CHECK(relative_gap(found.y, plain.y) < 1e-5);
  CHECK(relative_gap(found.d[2], plain.dv) < 1e-5);
}

TEST_CASE("a tap may change the pattern where it stands", "[ops][attention]") {
  // Ablation of head 1: its part of the result is zero, head 0's keeps its bits.
  ReplacePattern<float> ablate([](Tensor<float>& p) {
    float* out = p.data();
    for (Index i = 0; i < p.size(); ++i)
      if (i / (kTime * kTime) % kHeads == 1) out[i] = 0;
  });
  const Pass<float> plain = attend<float>(inputs<float>(), {}, nullptr);
  const Pass<float> found = attend<float>(inputs<float>(), {}, &ablate);
  bool right = true;
  for (Index i = 0; i < plain.y.size(); ++i)
    right &= found.y.data()[i] == (i % kWidth < kWidth / 2 ? plain.y.data()[i] : 0);
  CHECK(right);
}

TEST_CASE("a tap that changes the pattern's shape is an error", "[ops][attention][errors]") {
  const Tensor<float> x = random_tensor<float>({1, 2, 4}, 1);
  ReplacePattern<float> wrong([](Tensor<float>& p) { p = p.reshape({2, 4}); });
  CHECK_THROWS_WITH(attention<float>(x, x, x, {.heads = 2, .tap = &wrong}),
                    "attention: the replaced pattern (2,4) must have shape (1,2,2,2)");
}

TEST_CASE("a tap that moves the pattern away is an error, not a crash",
          "[ops][attention][errors]") {
  const Tensor<float> x = random_tensor<float>({1, 2, 4}, 1);
  Tensor<float> kept;
  ReplacePattern<float> thief([&](Tensor<float>& p) { kept = std::move(p); });
  CHECK(
      throws_in_child<ShapeError>([&] { attention<float>(x, x, x, {.heads = 2, .tap = &thief}); }));
}

TEST_CASE("what a tap throws comes through", "[ops][attention]") {
  const Tensor<float> x = random_tensor<float>({1, 2, 4}, 1);
  ReplacePattern<float> angry([](Tensor<float>&) { throw UsageError("no"); });
  CHECK_THROWS_AS(attention<float>(x, x, x, {.heads = 2, .tap = &angry}), UsageError);
}

namespace {

/// Writes the pattern and says nothing of it.
struct Sly : PatternTap<double> {
  bool see(Tensor<double>& p) override {
    p = Tensor<double>::zeros(p.shape());
    return false;
  }
};

}  // namespace

TEST_CASE("a pattern that was written is a constant, whatever the tap says", "[ops][attention]") {
  Tape<double> tape;
  const Var<double> q = tape.leaf(random_tensor<double>({1, 4, 4}, 1)),
                    v = tape.leaf(random_tensor<double>({1, 4, 4}, 2));
  Sly sly;
  const Var<double> y = attention(q, q, v, {.heads = 2, .tap = &sly});
  tape.backward(sum(y * y + v));
  CHECK(same_bits(y.value(), Tensor<double>::zeros({1, 4, 4})));
  CHECK(same_bits(tape.grad(q), Tensor<double>::zeros({1, 4, 4})));
  CHECK(same_bits(tape.grad(v), Tensor<double>::full({1, 4, 4}, 1)));
}
