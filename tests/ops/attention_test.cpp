// Attention on inputs small enough to do by hand: masks, saturated scores, heads.
#include <limits>

#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/taps.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

/// One head of width 1: numbers as (1,T,1).
template <Real T>
Tensor<T> column(std::initializer_list<T> values) {
  return {{1, static_cast<Index>(values.size()), 1}, values};
}

template <Real T>
Tensor<T> zeros(Index t) {
  return Tensor<T>::zeros({1, t, 1});
}

template <Real T>
bool finite(const Tensor<T>& x) {
  const auto all = x.values();
  return std::all_of(all.begin(), all.end(), [](T v) { return std::isfinite(v); });
}

}  // namespace

TEMPLATE_TEST_CASE("a query that may see nothing gives zeros and zero gradients",
                   "[ops][attention]", float, double) {
  using T = TestType;
  const Mask mask = allow(2, 2, [](Index t, Index) { return t == 1; });
  KeepPattern<T> tap;
  for (const bool watched : {false, true}) {
    CAPTURE(watched);
    const Attend<T> how{.mask = mask, .tap = watched ? &tap : nullptr};
    const auto f = [&](const std::vector<Var<T>>& x) {
      return sum(attention(x[0], x[1], x[2], how));
    };
    const Tensor<T> ones = column<T>({1, 1});
    const Pass<T> found = pass<T>(f, {ones, ones, column<T>({10, 20})}, Tensor<T>({}, {1}));
    CHECK(found.y.item() == 15);
    CHECK(same_bits(found.d[0], zeros<T>(2)));
    CHECK(relative_gap(found.d[1], column<T>({-2.5, 2.5})) < 1e-6);
    CHECK(relative_gap(found.d[2], column<T>({0.5, 0.5})) < 1e-6);
    CHECK(
        same_bits(attention<T>(ones, ones, column<T>({10, 20}), how).value(), column<T>({0, 15})));
  }
  CHECK(same_bits(tap.pattern, Tensor<T>({1, 1, 2, 2}, {0, 0, 0.5, 0.5})));
}

TEST_CASE("an empty row harms no other row of the batch", "[ops][attention]") {
  const Mask mask = allow(4, 4, [](Index t, Index s) { return t != 2 && s <= t; });
  const auto f = [&](const Mask& m) {
    return pass<float>(
        [&](const auto& x) { return attention(x[0], x[1], x[2], {.heads = 2, .mask = m}); },
        {random_tensor<float>({2, 4, 6}, 1), random_tensor<float>({2, 4, 6}, 2),
         random_tensor<float>({2, 4, 6}, 3)});
  };
  const Pass<float> holes = f(mask), whole = f(causal());
  for (Index b = 0; b < 2; ++b)
    for (Index i = 0; i < 4 * 6; ++i) {
      const float y = holes.y.data()[b * 24 + i];
      if (i / 6 == 2)
        CHECK(y == 0);
      else
        CHECK(y == Approx(whole.y.data()[b * 24 + i]).epsilon(1e-5));
    }
  for (const Tensor<float>& d : holes.d) CHECK(finite(d));
}

TEST_CASE("no keys at all give zeros", "[ops][attention]") {
  const Pass<double> found = pass<double>(
      [](const auto& x) { return attention(x[0], x[1], x[2], {.mask = everything()}); },
      {random_tensor<double>({1, 3, 2}, 1), Tensor<double>::zeros({1, 0, 2}),
       Tensor<double>::zeros({1, 0, 4})});
  CHECK(same_bits(found.y, Tensor<double>::zeros({1, 3, 4})));
  CHECK(same_bits(found.d[0], Tensor<double>::zeros({1, 3, 2})));
  CHECK(found.d[2].shape() == Shape{1, 0, 4});
}

TEST_CASE("no queries at all give zero gradients", "[ops][attention]") {
  const Pass<double> found =
      pass<double>([](const auto& x) { return attention(x[0], x[1], x[2], {.mask = causal()}); },
                   {zeros<double>(0), zeros<double>(3), zeros<double>(3)});
  CHECK(found.y.size() == 0);
  for (std::size_t i = 1; i < 3; ++i)
    CHECK(same_bits(found.d[i], Tensor<double>::zeros(found.d[i].shape())));
}

TEST_CASE("allow and block say what they mean", "[ops][attention]") {
  const Tensor<double> q = zeros<double>(1), k = zeros<double>(3), v = column<double>({1, 2, 4});
  const auto first_two = [](Index, Index s) { return s < 2; };
  CHECK(attention<double>(q, k, v, {.mask = allow(1, 3, first_two)}).item() == 1.5);
  CHECK(attention<double>(q, k, v, {.mask = block(1, 3, first_two)}).item() == 4);
}

TEMPLATE_TEST_CASE("the last of fewer queries than keys sees all of them", "[ops][attention]",
                   float, double) {
  using T = TestType;
  const Tensor<T> k = zeros<T>(5), v = column<T>({1, 2, 3, 4, 5});
  CHECK(attention<T>(zeros<T>(1), k, v, {.mask = causal()}).item() == Approx(3));
  CHECK(relative_gap(attention<T>(zeros<T>(2), k, v, {.mask = causal()}).value(),
                     column<T>({2.5, 3})) < 1e-6);
}

TEMPLATE_TEST_CASE("decoding a query at a time equals the whole at once", "[ops][attention]", float,
                   double) {
  using T = TestType;
  const Threads single(1);  // tiny regions
  constexpr Index kTime = 70, kWidth = 6;
  const Tensor<T> q = random_tensor<T>({1, kTime, kWidth}, 1),
                  k = random_tensor<T>({1, kTime, kWidth}, 2),
                  v = random_tensor<T>({1, kTime, kWidth}, 3);
  const Attend<T> how{.heads = 2, .mask = causal()};
  const Tensor<T> whole = attention<T>(q, k, v, how).value();
  Tensor<T> steps = Tensor<T>::uninitialized(whole.shape());
  T* to = steps.data();
  for (Index t = 0; t < kTime; ++t) {
    const auto first = [&](const Tensor<T>& x, Index from, Index rows) {
      return Tensor<T>({1, rows, kWidth},
                       x.values().subspan(static_cast<std::size_t>(from * kWidth),
                                          static_cast<std::size_t>(rows * kWidth)));
    };
    const Var<T> y = attention<T>(first(q, t, 1), first(k, 0, t + 1), first(v, 0, t + 1), how);
    to = std::copy_n(y.value().data(), kWidth, to);
  }
  CHECK(relative_gap(steps, whole) < (std::same_as<T, double> ? 1e-14 : 1e-6));
}

TEMPLATE_TEST_CASE("asking for the pattern changes no bit and keeps the mask", "[ops][attention]",
                   float, double) {
  using T = TestType;
  KeepPattern<T> tap;
  const Tensor<T> q = zeros<T>(3), v = column<T>({1, 2, 4});
  const Tensor<T> without = attention<T>(q, q, v, {}).value();
  const Tensor<T> with = attention<T>(q, q, v, {.tap = &tap}).value();
  CHECK(same_bits(with, without));
  CHECK(relative_gap(without, column<T>({1, 1.5, T(7) / 3})) < 1e-6);
  constexpr T kThird = T(1) / 3;
  CHECK(relative_gap(tap.pattern, Tensor<T>({1, 1, 3, 3}, {1, 0, 0, 0.5, 0.5, 0, kThird, kThird,
                                                           kThird})) < 1e-6);
  for (const Index above : {1, 2, 5}) CHECK(tap.pattern.data()[above] == 0);
}

TEST_CASE("each head's pattern is told apart", "[ops][attention]") {
  // Head 0 looks at key 0 and head 1 at key 1, by scores so far apart that exp is 0.
  KeepPattern<double> tap;
  attention<double>(
      Tensor<double>({1, 1, 2}, {1, 1}), Tensor<double>({1, 2, 2}, {1000, -1000, -1000, 1000}),
      Tensor<double>({1, 2, 2}, {1, 2, 3, 4}), {.heads = 2, .mask = everything(), .tap = &tap});
  CHECK(same_bits(tap.pattern, Tensor<double>({1, 2, 1, 2}, {1, 0, 0, 1})));
}

TEMPLATE_TEST_CASE("large scores do not overflow the softmax", "[ops][attention]", float, double) {
  using T = TestType;
  KeepPattern<T> tap;
  const auto pattern = [&](std::initializer_list<T> scores) {
    const Tensor<T> k = column<T>(scores);
    attention<T>(column<T>({1}), k, k, {.scale = 1, .mask = everything(), .tap = &tap});
    return tap.pattern.reshape({k.size()});
  };
  const double first = std::same_as<T, double> ? 0.4975000208 : 0.4975586;  // the input rounds too
  CHECK(relative_gap(pattern({T(7999.99), 8000, 2, 1}),
                     Tensor<double>({4}, {first, 1 - first, 0, 0})) < 1e-6);
  CHECK(same_bits(pattern({-1000, -1000}), Tensor<T>({2}, {0.5, 0.5})));
}

TEST_CASE("a NaN in one key reaches the queries that see it and no other", "[ops][attention]") {
  Tensor<float> k = random_tensor<float>({1, 4, 2}, 1);
  k.data()[2 * 2] = std::numeric_limits<float>::quiet_NaN();
  const Tensor<float> x = random_tensor<float>({1, 4, 2}, 2);
  const Var<float> y = attention<float>(x, k, x, {});
  for (Index i = 0; i < 8; ++i) {
    CAPTURE(i);
    CHECK(std::isnan(y.value().data()[i]) == (i >= 4));
  }
}

TEST_CASE("a NaN at a key that no row of a block may see reaches none of its rows",
          "[ops][attention]") {
  constexpr Index kTime = 150, kBlock = 64;  // the window of row 64 begins at key 45
  const Mask window = allow(kTime, kTime, [](Index t, Index s) { return s <= t && s > t - 20; });
  const auto f = [&](const auto& x) { return attention(x[0], x[1], x[2], {.mask = window}); };
  std::vector<Tensor<float>> x;
  for (const std::uint64_t seed : {1U, 2U, 3U})
    x.push_back(random_tensor<float>({1, kTime, 4}, seed));
  const Pass<float> clean = pass<float>(f, x);
  for (const std::size_t i : {1U, 2U}) x[i].data()[3 * 4] = std::numeric_limits<float>::quiet_NaN();
  const Pass<float> spoilt = pass<float>(f, x);
  const auto later_rows = [](const Tensor<float>& y) {
    return Tensor<float>({kTime - kBlock, 4}, y.values().subspan(kBlock * 4));
  };
  CHECK_FALSE(finite(spoilt.y));
  CHECK(same_bits(later_rows(spoilt.y), later_rows(clean.y)));
  CHECK(same_bits(later_rows(spoilt.d[0]), later_rows(clean.d[0])));
}
