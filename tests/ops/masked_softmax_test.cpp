// masked_softmax against plain loops and against the pattern of attention, and what stands at
// masked places.
#include <limits>

#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/numbers.hpp"
#include "support/sights.hpp"
#include "support/taps.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

/// The result and its gradient dx for dy, by the formulas: rows of exp(x + added) over their sum.
struct Plain {
  Tensor<double> y, dx;
};

Plain plain_softmax(const PlainSizes& n, const Tensor<double>& x, const Tensor<double>& dy,
                    Added added) {
  Plain out{Tensor<double>::zeros(x.shape()), Tensor<double>::zeros(x.shape())};
  double *y = out.y.data(), *dx = out.dx.data();
  const double *in = x.data(), *up = dy.data();
  for (Index b = 0; b < n.b; ++b)
    for (Index h = 0; h < n.heads; ++h)
      for (Index t = 0; t < n.t; ++t, in += n.s, up += n.s, y += n.s, dx += n.s) {
        double sum = 0, inner = 0;
        for (Index s = 0; s < n.s; ++s) sum += std::exp(in[s] + added(b, h, t, s));
        for (Index s = 0; s < n.s; ++s) {
          y[s] = sum == 0 ? 0 : std::exp(in[s] + added(b, h, t, s)) / sum;
          inner += y[s] * up[s];
        }
        for (Index s = 0; s < n.s; ++s) dx[s] = y[s] * (up[s] - inner);
      }
  return out;
}

template <Real T>
Function<T> masked(const Mask& mask) {
  return [mask](const std::vector<Var<T>>& x) { return masked_softmax(x[0], mask); };
}

std::vector<Sight> all_sights() {
  std::vector<Sight> all = sights();
  for (Sight& sight : mixed_sights()) all.push_back(std::move(sight));
  return all;
}

/// x with a value at the places where the sight lets nobody look.
template <Real T>
Tensor<T> spoilt(const PlainSizes& n, const Sight& sight, Tensor<T> x, T value) {
  T* out = x.data();
  for (Index b = 0; b < n.b; ++b)
    for (Index h = 0; h < n.heads; ++h)
      for (Index t = 0; t < n.t; ++t)
        for (Index s = 0; s < n.s; ++s, ++out)
          if (sight.added(n, b, h, t, s) == kUnseen) *out = value;
  return x;
}

}  // namespace

TEMPLATE_TEST_CASE("masked_softmax equals plain loops", "[ops][masked_softmax]", float, double) {
  using T = TestType;
  const Threads one(1);
  for (const Sight& sight : all_sights())
    for (const auto& [t, s] : kSomeSizes) {
      const PlainSizes n{3, t, s, 2, 2, 1, 1, 1};
      CAPTURE(sight.name, t, s);
      const Tensor<T> x = random_tensor<T>({3, 2, t, s}, 1), dy = random_tensor<T>(x.shape(), 2);
      const Plain plain = plain_softmax(
          n, as<double>(x), as<double>(dy),
          [&](Index b, Index h, Index i, Index j) { return sight.added(n, b, h, i, j); });
      const Pass<T> found = pass<T>(masked<T>(sight.mask(n)), {x}, dy);
      const double close = std::same_as<T, double> ? 1e-12 : 1e-6;
      CHECK(relative_gap(found.y, plain.y) < close);
      CHECK(relative_gap(found.d[0], plain.dx) < close);
    }
}

TEMPLATE_TEST_CASE("masked places are exactly zero, and nothing that stands there leaks",
                   "[ops][masked_softmax]", float, double) {
  using T = TestType;
  const PlainSizes n{3, 9, 12, 2, 2, 1, 1, 1};
  const Tensor<T> x = random_tensor<T>({3, 2, 9, 12}, 1), dy = random_tensor<T>(x.shape(), 2);
  for (const Sight& sight : all_sights())
    for (const double bad : {kNaN, HUGE_VAL, -HUGE_VAL}) {
      CAPTURE(sight.name, bad);
      const Function<T> f = masked<T>(sight.mask(n));
      const Pass<T> clean = pass<T>(f, {x}, dy);
      const Pass<T> dirty = pass<T>(f, {spoilt(n, sight, x, static_cast<T>(bad))},
                                    spoilt(n, sight, dy, static_cast<T>(bad)));
      CHECK(same_bits(dirty.y, clean.y));
      CHECK(same_bits(spoilt(n, sight, clean.y, T(0)), clean.y));
      // Zeros of either sign, so not the bits.
      CHECK(relative_gap(dirty.d[0], clean.d[0]) == 0);
      CHECK(relative_gap(spoilt(n, sight, clean.d[0], T(0)), clean.d[0]) == 0);
    }
}

TEMPLATE_TEST_CASE("masked_softmax is the pattern that attention makes", "[ops][masked_softmax]",
                   float, double) {
  // With q of one and heads of width one the scores are the keys.
  using T = TestType;
  const PlainSizes n{3, 40, 45, 2, 2, 1, 1, 1};
  const Tensor<T> k = random_tensor<T>({3, 45, 2}, 1);
  Tensor<T> scores = Tensor<T>::uninitialized({3, 2, 40, 45});
  T* out = scores.data();
  for (Index i = 0; i < scores.size(); ++i)
    out[i] = k.data()[(i / (2 * 40 * 45) * 45 + i % 45) * 2 + i / (40 * 45) % 2];
  for (const Sight& sight : all_sights()) {
    CAPTURE(sight.name);
    KeepPattern<T> tap;
    attention<T>(Tensor<T>::full({3, 40, 2}, 1), k, k,
                 {.heads = 2, .mask = sight.mask(n), .tap = &tap});
    const Tensor<T> found = masked_softmax<T>(scores, sight.mask(n)).value();
    CHECK(relative_gap(found, tap.pattern) < (std::same_as<T, double> ? 1e-15 : 1e-7));
  }
}

TEST_CASE("masked_softmax takes scores of any rank from two on", "[ops][masked_softmax]") {
  const Mask mask = causal() & allow(3, 4, [](Index t, Index s) { return t + s != 2; });
  const Tensor<double> x = random_tensor<double>({2, 3, 2, 3, 4}, 1);
  const Tensor<double> five = masked_softmax<double>(x, mask).value();
  for (const Shape& shape : {Shape{6, 2, 3, 4}, Shape{12, 3, 4}})
    CHECK(
        same_bits(masked_softmax<double>(x.reshape(shape), mask).value().reshape(x.shape()), five));
  const auto first = [](const Tensor<double>& all) {
    return Tensor<double>({3, 4}, all.values().first(12));
  };
  CHECK(same_bits(masked_softmax<double>(first(x), mask).value(), first(five)));
}

TEST_CASE("masked_softmax names what does not fit", "[ops][masked_softmax][errors]") {
  const auto of = [](const Shape& shape, const Mask& mask) {
    return masked_softmax<float>(Tensor<float>::zeros(shape), mask);
  };
  CHECK_THROWS_WITH(of({3}, causal()), "masked_softmax: scores (3) are not (..., T, S)");
  CHECK_THROWS_WITH(of({2, 3, 4}, allow(3, 5, [](Index, Index) { return true; })),
                    "masked_softmax: the mask is for 3 queries and 5 keys, not 3 and 4");
  CHECK_THROWS_WITH(of({3, 4}, keys_below({1, 2})),
                    "masked_softmax: the mask has lengths of 2 sequences, not 1");
  CHECK_THROWS_WITH(of({2, 3, 4}, keys_below({1, 5})),
                    "masked_softmax: length 5 of sequence 1 is not in [0, 4]");
  CHECK_THROWS_WITH(of({2, 3, 4}, bias(Tensor<double>::zeros({2, 3, 4}))),
                    "masked_softmax: the mask's bias (2,3,4) does not fit scores (2,1,3,4)");
}
