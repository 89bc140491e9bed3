// Masks on inputs small enough to do by hand: what each lets a query see, alone and with others.
#include <limits>
#include <optional>

#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/numbers.hpp"
#include "support/taps.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

/// Heads of width 1: numbers as (B,T,1).
Tensor<double> column(std::initializer_list<double> values, Index batch = 1) {
  return Tensor<double>({batch, std::ssize(values) / batch, 1}, values);
}

/// The means of the keys that the queries see, of values 1, 2, 3, ...: all scores are 0.
Tensor<double> means(Index queries, Index keys, const Mask& mask, Index batch = 1) {
  Tensor<double> v = Tensor<double>::uninitialized({batch, keys, 1});
  double* out = v.data();
  for (Index i = 0; i < v.size(); ++i) out[i] = static_cast<double>(i % keys + 1);
  return attention<double>(Tensor<double>::zeros({batch, queries, 1}),
                           Tensor<double>::zeros({batch, keys, 1}), v, {.mask = mask})
      .value();
}

bool close(const Tensor<double>& found, const Tensor<double>& expected) {
  return relative_gap(found, expected) < 1e-14;
}

}  // namespace

TEST_CASE("a causal mask with an offset lets a query see up to its position", "[ops][mask]") {
  CHECK(close(means(1, 5, causal(4)), column({3})));
  CHECK(close(means(2, 5, causal(3)), column({2.5, 3})));
  CHECK(close(means(2, 5, causal(0)), column({1, 1.5})));
  CHECK(close(means(3, 2, causal(1)), column({1.5, 1.5, 1.5})));
  CHECK(close(means(2, 5, causal(std::numeric_limits<Index>::max())), column({3, 3})));
  CHECK(close(means(2, 5, causal(1) & causal()), column({1.5, 2})));
  CHECK(close(means(2, 5, causal() & causal(4)), column({2.5, 3})));
}

TEST_CASE("lengths tell sequences apart", "[ops][mask]") {
  CHECK(close(means(2, 4, keys_below({4, 1, 0}), 3), column({2.5, 2.5, 1, 1, 0, 0}, 3)));
  CHECK(close(means(2, 4, keys_below({4, 3, 0}) & causal(), 3), column({2, 2.5, 2, 2, 0, 0}, 3)));
  CHECK(close(means(1, 4, keys_below({4, 1}) & keys_below({3, 2}), 2), column({2, 1}, 2)));
}

TEST_CASE("a bias is added to the scores, and -inf blocks", "[ops][mask]") {
  // Weights 1 : 2 : 4, then without the key of 2.
  const double ln2 = std::log(2.0);
  CHECK(close(means(2, 3, bias(Tensor<double>({2, 3}, {0, ln2, 2 * ln2, 0, -kInf, 2 * ln2}))),
              column({17.0 / 7, 2.6})));
  CHECK(close(means(1, 3,
                    bias(Tensor<double>({1, 3}, {0, ln2, 0})) &
                        bias(Tensor<double>({1, 1, 3}, {-kInf, ln2, 2 * ln2}))),
              column({2.5})));
}

TEST_CASE("ALiBi's slopes as a bias of each head give its weights", "[ops][mask]") {
  // Press et al. 2022, sec. 3: head h of two adds -m (t - s) with m = 1/16 and 1/256.
  constexpr Index kTime = 5;
  Tensor<double> table = Tensor<double>::uninitialized({2, kTime, kTime});
  double* out = table.data();
  for (Index i = 0; i < table.size(); ++i)
    out[i] = (i < kTime * kTime ? -1.0 / 16 : -1.0 / 256) *
             static_cast<double>(i / kTime % kTime - i % kTime);
  KeepPattern<double> tap;
  const Tensor<double> x = Tensor<double>::zeros({1, kTime, 2});
  attention<double>(x, x, x, {.heads = 2, .mask = causal() & bias(table), .tap = &tap});
  for (Index h = 0; h < 2; ++h)
    for (Index t = 0; t < kTime; ++t)
      for (Index s = 0; s < kTime; ++s) {  // a geometric row: r^(t-s) (1-r) / (1-r^(t+1))
        const double r = std::exp(h == 0 ? -1.0 / 16 : -1.0 / 256);
        const double weight = std::pow(r, t - s) * (1 - r) / (1 - std::pow(r, t + 1));
        CHECK(std::as_const(tap.pattern).data()[(h * kTime + t) * kTime + s] ==
              Approx(s <= t ? weight : 0).epsilon(1e-12));
      }
}

TEMPLATE_TEST_CASE("a query that sees nothing gives zeros, whichever masks hide the keys",
                   "[ops][mask]", float, double) {
  using T = TestType;
  const auto table = [](Index t0) {
    return allow(2, 2, [=](Index t, Index s) { return t == 1 || s == t0; });
  };
  const Mask row_blocked = bias(Tensor<double>({2, 2}, {-kInf, -kInf, 0, 0}));
  for (const Mask& mask :
       {row_blocked, table(0) & table(1),
        table(1) & causal() & bias(Tensor<double>::zeros({1, 1, 2, 2})) & keys_below({2})}) {
    // The second table hides key 0 from query 0, and causal() key 1.
    KeepPattern<T> tap;
    for (PatternTap<T>* watch :
         {static_cast<PatternTap<T>*>(nullptr), static_cast<PatternTap<T>*>(&tap)}) {
      CAPTURE(watch);
      const Tensor<T> ones({1, 2, 1}, {1, 1});
      const Pass<T> found = pass<T>(
          [&](const auto& x) { return attention(x[0], x[1], x[2], {.mask = mask, .tap = watch}); },
          {ones, ones, Tensor<T>({1, 2, 1}, {10, 20})}, ones);
      CHECK(same_bits(found.y, Tensor<T>({1, 2, 1}, {0, 15})));
      CHECK(same_bits(found.d[0], Tensor<T>({1, 2, 1}, {0, 0})));
      CHECK(relative_gap(found.d[1], Tensor<T>({1, 2, 1}, {T(-2.5), T(2.5)})) < 1e-6);
      CHECK(relative_gap(found.d[2], Tensor<T>({1, 2, 1}, {T(0.5), T(0.5)})) < 1e-6);
    }
    CHECK(same_bits(tap.pattern, Tensor<T>({1, 1, 2, 2}, {0, 0, T(0.5), T(0.5)})));
  }
}

TEMPLATE_TEST_CASE("what stands in the padding reaches nothing", "[ops][mask]", float, double) {
  using T = TestType;
  constexpr Index kTime = 70;
  const std::vector<Index> lengths = {70, 37, 0};
  const Tensor<T> clean = random_tensor<T>({3, kTime, 4}, 1);
  Tensor<T> dirty = clean;
  T* out = dirty.data();
  for (Index i = 0; i < dirty.size(); ++i)
    if (i / 4 % kTime >= lengths[static_cast<std::size_t>(i / (4 * kTime))]) out[i] = T(kNaN);
  for (const Mask& mask : {keys_below(lengths), causal() & keys_below(lengths)}) {
    const auto f = [&](const auto& x) {
      return attention(x[0], x[1], x[2], {.heads = 2, .mask = mask});
    };
    const Pass<T> expected = pass<T>(f, {clean, clean, clean}),
                  found = pass<T>(f, {clean, dirty, dirty});
    CHECK(same_bits(found.y, expected.y));
    for (std::size_t i = 0; i < 3; ++i) CHECK(same_bits(found.d[i], expected.d[i]));
  }
}

TEST_CASE("a padded batch gives each sequence what it gives alone", "[ops][mask]") {
  // To the bit where the blocks are the same; here they are not.
  const Tensor<double> x = random_tensor<double>({2, 50, 6}, 1);
  const Attend<double> how{.heads = 2, .mask = causal() & keys_below({50, 21})};
  const Tensor<double> both = attention<double>(x, x, x, how).value();
  const Tensor<double> short_one({1, 21, 6}, x.values().subspan(50 * 6, 21 * 6));
  const Tensor<double> alone =
      attention<double>(short_one, short_one, short_one, {.heads = 2}).value();
  CHECK(close(Tensor<double>({1, 21, 6}, both.values().subspan(50 * 6, 21 * 6)), alone));
}

TEST_CASE("attention keeps the tables of a mask that is gone or was written to", "[ops][mask]") {
  const Tensor<double> x = random_tensor<double>({1, 70, 4}, 1);  // too large to be kept
  const auto gradient = [&](bool spoil) {
    Tape<double> tape;
    const Var<double> leaf = tape.leaf(x);
    Tensor<double> table = random_tensor<double>({2, 70, 70}, 2);
    std::optional<Mask> mask =
        bias(table) & allow(70, 70, [](Index t, Index s) { return (t + s) % 3 != 0; });
    const Var<double> y = attention(leaf, leaf, leaf, {.heads = 2, .mask = *mask});
    if (spoil) mask->bias.data()[0] = table.data()[0] = 1000;
    mask.reset();
    tape.backward(sum(y * y));
    return tape.grad(leaf);
  };
  CHECK(same_bits(gradient(true), gradient(false)));
}

TEST_CASE("a replaced pattern is used as it is, whatever lengths and bias were", "[ops][mask]") {
  const Tensor<double> x = random_tensor<double>({2, 3, 1}, 1);
  ReplacePattern<double> uniform(
      [](Tensor<double>& p) { p = Tensor<double>::full(p.shape(), 1.0 / 3); });
  const Mask mask = keys_below({2, 0}) & bias(Tensor<double>::full({3, 3}, -kInf));
  const Pass<double> found = pass<double>(
      [&](const auto& v) { return attention(v[0], v[1], v[2], {.mask = mask, .tap = &uniform}); },
      {x, x, x}, Tensor<double>::full({2, 3, 1}, 1));
  for (Index b = 0; b < 2; ++b)
    for (Index t = 0; t < 3; ++t) {
      const double* v = x.data() + b * 3;
      CHECK(found.y.data()[b * 3 + t] == Approx((v[0] + v[1] + v[2]) / 3));
    }
  CHECK(close(found.d[2], Tensor<double>::full({2, 3, 1}, 1)));
}

TEST_CASE("a mask refuses what it cannot mean", "[ops][mask][errors]") {
  CHECK_THROWS_WITH(causal(-1), "mask: causal offset -1 is negative");
  CHECK_THROWS_WITH(bias(Tensor<double>::zeros({3})),
                    "mask: bias (3) is not (T,S), (H,T,S) or (B,H,T,S)");
  CHECK_THROWS_WITH(bias({}), "mask: bias () is not (T,S), (H,T,S) or (B,H,T,S)");
  CHECK_THROWS_WITH(bias(Tensor<double>({1, 2, 2}, {0, -kInf, kNaN, 0})),
                    "mask: bias nan at (0,1,0) is neither -inf nor in the range of float");
  CHECK_THROWS_WITH(bias(Tensor<double>({2, 2}, {0, 0, 0, kInf})),
                    "mask: bias inf at (1,1) is neither -inf nor in the range of float");
  CHECK_THROWS_WITH(bias(Tensor<double>({1, 1}, {-1e300})),
                    "mask: bias -1e+300 at (0,0) is neither -inf nor in the range of float");
}

TEST_CASE("masks that do not fit together name both", "[ops][mask][errors]") {
  const auto all = [](Index, Index) { return true; };
  CHECK_THROWS_WITH(allow(2, 3, all) & allow(3, 2, all),
                    "mask: 2 queries and 3 keys do not fit together with 3 queries and 2 keys");
  CHECK_THROWS_WITH(keys_below({1, 2}) & keys_below({1}),
                    "mask: lengths of 2 sequences and of 1 do not fit together");
  const auto zeros = [](const Shape& shape) { return bias(Tensor<double>::zeros(shape)); };
  CHECK_THROWS_WITH(zeros({2, 3}) & zeros({4, 3, 3}),
                    "mask: biases (4,3,3) and (2,3) do not fit together");
  CHECK_THROWS_AS(zeros({2, 3}) & zeros({3, 2}), ShapeError);
}

TEST_CASE("attention names the part of a mask that does not fit", "[ops][mask][errors]") {
  const Var<float> x = Tensor<float>::zeros({2, 3, 4});
  const auto with = [&](const Mask& mask) {
    return attention(x, x, x, {.heads = 2, .mask = mask});
  };
  CHECK_THROWS_WITH(with(keys_below({3})), "attention: the mask has lengths of 1 sequences, not 2");
  CHECK_THROWS_WITH(with(keys_below({3, 4})), "attention: length 4 of sequence 1 is not in [0, 3]");
  CHECK_THROWS_WITH(with(keys_below({-1, 3})),
                    "attention: length -1 of sequence 0 is not in [0, 3]");
  for (const Shape& wrong : {Shape{3, 4}, Shape{1, 3, 3}, Shape{1, 2, 3, 3}, Shape{3, 2, 3, 3}}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(with(bias(Tensor<double>::zeros(wrong))), ShapeError);
  }
  CHECK_THROWS_WITH(with(bias(Tensor<double>::zeros({1, 3, 3}))),
                    "attention: the mask's bias (1,3,3) does not fit scores (2,2,3,3)");
}

// A bool says nothing about which mask is meant.
static_assert(!std::is_convertible_v<bool, Mask> && !std::is_constructible_v<Mask, bool>);
static_assert(!std::is_convertible_v<bool, std::optional<Mask>> &&
              !std::is_constructible_v<std::optional<Mask>, bool>);
static_assert(!std::is_aggregate_v<Mask>);  // else g++ takes `.mask = true` for its first member
static_assert(std::is_convertible_v<Mask, std::optional<Mask>>);

TEST_CASE("without a mask attention is causal for as many queries as keys", "[ops][mask]") {
  const auto x = random_tensor<double>({2, 5, 4}, 1);
  CHECK(same_bits(attention<double>(x, x, x, {.heads = 2}).value(),
                  attention<double>(x, x, x, {.heads = 2, .mask = causal()}).value()));
}

TEST_CASE("other numbers of queries and keys need a mask", "[ops][mask][errors]") {
  const auto q = random_tensor<double>({1, 5, 4}, 1), k = random_tensor<double>({1, 3, 4}, 2);
  CHECK_THROWS_WITH(
      attention<double>(q, k, k, {}),
      "attention: 5 queries and 3 keys need a mask: causal(), everything() or another");
  CHECK_THROWS_AS(attention<double>(k, q, q, {}), ShapeError);
  CHECK(attention<double>(q, k, k, {.mask = everything()}).shape() == Shape{1, 5, 4});
  CHECK(attention<double>(k, q, q, {.mask = causal()}).shape() == Shape{1, 3, 4});
}
