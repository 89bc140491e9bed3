#include <limits>
#include <set>

#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/taps.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

/// A value of one per head of width S: attention's result is then the pattern after dropout.
template <Real T>
Tensor<T> unit_values(Index b, Index s, Index heads) {
  Tensor<T> v = Tensor<T>::zeros({b, s, heads * s});
  T* out = v.data();
  for (Index i = 0; i < b * s; ++i)
    for (Index h = 0; h < heads; ++h) out[i * heads * s + h * s + i % s] = 1;
  return v;
}

}  // namespace

TEST_CASE("dropout of rate 0 or without a stream is nothing", "[ops][dropout]") {
  Rng rng(1);
  Tape<float> tape;
  const Var<float> x = tape.leaf(random_tensor<float>({3, 5}, 1));
  CHECK(dropout(x, 0, &rng).value().data() == x.value().data());
  CHECK(dropout(x, 0.5, nullptr).value().data() == x.value().data());
  CHECK(rng.position() == 0);
  CHECK(tape.op_names() == std::vector<std::string>{"leaf"});
}

TEMPLATE_TEST_CASE("dropout keeps its share and scales what it keeps", "[ops][dropout]", float,
                   double) {
  using T = TestType;
  constexpr Index kSize = 1'000'000;
  const Tensor<T> x = random_tensor<T>({kSize}, 1);
  for (const double rate : {0.1, 0.3, 0.8}) {
    CAPTURE(rate);
    Rng rng(7);
    const Tensor<T> y = dropout<T>(x, rate, &rng).value();
    Index kept = 0;
    bool right = true;
    for (Index i = 0; i < kSize; ++i) {
      if (y.data()[i] == 0) continue;
      ++kept;
      right &= y.data()[i] == x.data()[i] * static_cast<T>(1 / (1 - rate));
    }
    CHECK(right);
    const double deviation = std::sqrt(rate * (1 - rate) / static_cast<double>(kSize));
    CHECK(std::fabs(static_cast<double>(kept) / static_cast<double>(kSize) - (1 - rate)) <
          5 * deviation);
  }
}

TEST_CASE("dropout's gradient is dropped where its result was", "[ops][dropout]") {
  const Tensor<float> x = random_tensor<float>({37, 11}, 1);
  const auto f = [](const auto& v) {
    Rng rng(7);
    rng.bits();  // so that it does not start at a multiple of four
    return dropout(v[0], 0.4, &rng);
  };
  const Pass<float> found = pass<float>(f, {x}, x);
  CHECK(same_bits(found.d[0], found.y));
}

TEST_CASE("dropout is a function of the stream and moves it", "[ops][dropout]") {
  const Tensor<float> x = Tensor<float>::full({1001}, 1);
  Rng one(7), two(7), other(8);
  const Tensor<float> first = dropout<float>(x, 0.5, &one).value();
  CHECK(one.position() == 1001);
  const Tensor<float> second = dropout<float>(x, 0.5, &one).value();
  CHECK(one.position() == 1004 + 1001);  // each call starts at a multiple of four
  CHECK(same_bits(dropout<float>(x, 0.5, &two).value(), first));
  CHECK(same_bits(dropout<float>(x, 0.5, &two).value(), second));
  CHECK_FALSE(same_bits(first, second));
  CHECK_FALSE(same_bits(dropout<float>(x, 0.5, &other).value(), first));
}

TEST_CASE("float and double drop the same elements", "[ops][dropout]") {
  const Tensor<double> x = Tensor<double>::full({1000}, 1);
  Rng one(7), two(7);
  const Tensor<float> single = dropout<float>(as<float>(x), 0.5, &one).value();
  CHECK(relative_gap(single, dropout<double>(x, 0.5, &two).value()) == 0);
}

TEST_CASE("dropout refuses what is no rate", "[ops][dropout][errors]") {
  const Var<float> x = random_tensor<float>({3}, 1);
  Rng rng(1);
  CHECK_THROWS_WITH(dropout(x, 1, &rng), "dropout: rate must be in [0, 1), got 1");
  CHECK_THROWS_WITH(dropout(x, -0.1, &rng), "dropout: rate must be in [0, 1), got -0.1");
  CHECK_THROWS_WITH(dropout(x, 1.5, nullptr), "dropout: rate must be in [0, 1), got 1.5");
  CHECK_THROWS_AS(dropout(x, std::numeric_limits<double>::quiet_NaN(), &rng), UsageError);
  CHECK_THROWS_WITH(attention(x, x, x, {.dropout = 0.5, .random = &rng}),
                    "attention: q (3), k (3) and v (3) do not fit (B,T,C), (B,S,C'), (B,S,C'')");
  const Var<float> y = random_tensor<float>({1, 2, 2}, 1);
  CHECK_THROWS_WITH(attention(y, y, y, {.dropout = 1, .random = &rng}),
                    "attention: dropout must be in [0, 1), got 1");
  CHECK(rng.position() == 0);
}

TEMPLATE_TEST_CASE("a tap sees the pattern before dropout, the values feel it after",
                   "[ops][dropout][attention]", float, double) {
  using T = TestType;
  constexpr int kSeeds = 4000;
  const Threads single(1);  // four thousand tiny regions
  const Tensor<T> one = Tensor<T>::full({1, 1, 1}, 1);
  double mean = 0;
  bool pattern_whole = true, inverted = true;
  for (int seed = 0; seed < kSeeds; ++seed) {
    Rng rng(static_cast<std::uint64_t>(seed));
    KeepPattern<T> tap;
    const T y = attention<T>(one, one, one, {.dropout = 0.2, .random = &rng, .tap = &tap}).item();
    pattern_whole &= tap.pattern.item() == 1;
    inverted &= y == 0 || y == T(1.25);
    mean += static_cast<double>(y) / kSeeds;
  }
  CHECK(pattern_whole);
  CHECK(inverted);
  CHECK(std::fabs(mean - 1) < 5 * 0.5 / std::sqrt(kSeeds));
}

TEMPLATE_TEST_CASE("attention drops its share of the pattern, each entry for itself",
                   "[ops][dropout][attention]", float, double) {
  using T = TestType;
  constexpr Index kBatch = 2, kTime = 70, kKeys = 75, kHeads = 2;
  const double rate = 0.3;
  Rng rng(7);
  KeepPattern<T> tap;
  const Tensor<T> y =
      attention<T>(
          random_tensor<T>({kBatch, kTime, 4}, 1), random_tensor<T>({kBatch, kKeys, 4}, 2),
          unit_values<T>(kBatch, kKeys, kHeads),
          {.heads = kHeads, .mask = everything(), .dropout = rate, .random = &rng, .tap = &tap})
          .value();
  Index kept = 0;
  bool right = true;
  std::set<std::vector<bool>> masks;
  std::vector<bool> last;
  Index overlaps = 0;  // rows that begin as the one before ended: draws used twice
  const T* p = std::as_const(tap.pattern).data();
  for (Index b = 0; b < kBatch; ++b)
    for (Index h = 0; h < kHeads; ++h)
      for (Index t = 0; t < kTime; ++t) {
        const T* row = y.data() + (b * kTime + t) * kHeads * kKeys + h * kKeys;
        std::vector<bool> mask;
        for (Index s = 0; s < kKeys; ++s, ++p) {
          mask.push_back(row[s] != 0);
          kept += row[s] != 0 ? 1 : 0;
          right &= row[s] == 0 || std::fabs(row[s] / *p * T(1 - rate) - 1) < T(1e-6);
        }
        overlaps +=
            std::equal(last.end() - (last.empty() ? 0 : 3), last.end(), mask.begin()) ? 1 : 0;
        masks.insert(mask);
        last = mask;
      }
  CHECK(right);
  const auto n = static_cast<double>(tap.pattern.size());
  const double deviation = std::sqrt(rate * (1 - rate) / n);
  CHECK(std::fabs(static_cast<double>(kept) / n - (1 - rate)) < 5 * deviation);
  CHECK(overlaps < kBatch * kHeads * kTime / 2);
  CHECK(masks.size() == kBatch * kHeads * kTime);  // no two rows, heads or sequences alike
}

TEMPLATE_TEST_CASE("attention drops the same entries under any mask", "[ops][dropout][attention]",
                   float, double) {
  using T = TestType;
  constexpr Index kTime = 150, kHeads = 2;
  const auto near = [](Index t, Index s) { return s <= t && s > t - 20; };
  const auto dropped = [&](const Mask& mask) {
    Rng rng(7);
    const Tensor<T> flat = Tensor<T>::zeros({1, kTime, 4});  // so that every entry seen is large
    return attention<T>(flat, flat, unit_values<T>(1, kTime, kHeads),
                        {.heads = kHeads, .mask = mask, .dropout = 0.3, .random = &rng})
        .value();
  };
  const Tensor<T> whole = dropped(everything()), window = dropped(allow(kTime, kTime, near));
  Index different = 0;
  for (Index i = 0; i < whole.size(); ++i) {
    const Index t = i / (kHeads * kTime), s = i % kTime;
    const bool expected = near(t, s) && whole.data()[i] != 0;
    if ((window.data()[i] != 0) != expected) ++different;
  }
  CHECK(different == 0);
}

TEST_CASE("attention's dropout is a function of the stream and moves it",
          "[ops][dropout][attention]") {
  const Tensor<float> x = random_tensor<float>({2, 5, 4}, 1);
  const auto run = [&](Rng& rng) {
    return attention<float>(x, x, x, {.heads = 2, .dropout = 0.5, .random = &rng}).value();
  };
  Rng one(7), two(7);
  const Tensor<float> first = run(one);
  CHECK(one.position() >= 2 * 2 * 5 * 5);
  const Tensor<float> second = run(one);
  CHECK_FALSE(same_bits(first, second));
  CHECK(same_bits(run(two), first));
  CHECK(same_bits(run(two), second));

  Rng still(7);
  const Tensor<float> whole = attention<float>(x, x, x, {.heads = 2}).value();
  CHECK(same_bits(attention<float>(x, x, x, {.heads = 2, .random = &still}).value(), whole));
  CHECK(same_bits(attention<float>(x, x, x, {.heads = 2, .dropout = 0.5}).value(), whole));
  CHECK(still.position() == 0);
}

TEST_CASE("attention's gradient drops the entries its result dropped",
          "[ops][dropout][attention]") {
  // With values of one per key the result is the dropped pattern d; sum(dy y) has dv = d^T dy.
  constexpr Index kTime = 40;
  const auto f = [](const auto& v) {
    Rng rng(7);
    return attention(v[0], v[1], v[2], {.mask = causal(), .dropout = 0.4, .random = &rng});
  };
  const Tensor<double> dy = random_tensor<double>({1, kTime, kTime}, 3);
  const Pass<double> found =
      pass<double>(f,
                   {random_tensor<double>({1, kTime, 3}, 1),
                    random_tensor<double>({1, kTime, 3}, 2), unit_values<double>(1, kTime, 1)},
                   dy);
  Tensor<double> dv = Tensor<double>::zeros({1, kTime, kTime});
  double* to = dv.data();
  for (Index t = 0; t < kTime; ++t)
    for (Index s = 0; s < kTime; ++s)
      for (Index c = 0; c < kTime; ++c)
        to[s * kTime + c] += found.y.data()[t * kTime + s] * dy.data()[t * kTime + c];
  CHECK(relative_gap(found.d[2], dv) < 1e-13);
}
