// Fused attention against plain loops, at every size around the borders of its blocks.
#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/plain_attention.hpp"
#include "support/sights.hpp"
#include "support/taps.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

template <Real T>
constexpr double kPlainClose = std::same_as<T, double> ? 1e-12 : 1e-6;

/// By what dropout with this seed multiplies the pattern: found with all scores alike, and a value
/// for each key.
Tensor<double> factors_of(const PlainSizes& n, double rate, Rng rng) {
  Tensor<double> v = Tensor<double>::zeros({n.b, n.s, n.heads * n.s});
  double* one = v.data();
  for (Index i = 0; i < n.b * n.s * n.heads; ++i) one[i * n.s + i / n.heads % n.s] = 1;
  const Tensor<double> y =
      attention<double>(Tensor<double>::zeros({n.b, n.t, n.heads}),
                        Tensor<double>::zeros({n.b, n.s, n.heads}), v,
                        {.heads = n.heads, .mask = everything(), .dropout = rate, .random = &rng})
          .value();
  return table(n, 4, [&](Index b, Index h, Index t, Index s) {
    return y.data()[((b * n.t + t) * n.heads + h) * n.s + s] > 0 ? 1 / (1 - rate) : 0;
  });
}

/// The largest gap, over the result, the pattern and the three gradients, without a tap and with
/// one. Gradients are measured against the largest of the three: where the softmax is saturated,
/// those of q and k are small differences of larger numbers.
template <Real T>
double gap(const PlainSizes& n, const Mask& mask, Added added, double dropout = 0) {
  const auto seed = static_cast<std::uint64_t>(n.t * 1000 + n.s);
  const auto draw = [&](Index rows, Index width, std::uint64_t i) {
    return random_tensor<T>({n.b, rows, width}, 4 * seed + i);
  };
  const Tensor<T> q = draw(n.t, n.heads * n.d, 0), k = draw(n.s, n.kv_heads * n.d, 1),
                  v = draw(n.s, n.kv_heads * n.dv, 2), dy = draw(n.t, n.heads * n.dv, 3);
  const PlainAttention plain =
      plain_attention(n, as<double>(q), as<double>(k), as<double>(v), as<double>(dy), added,
                      dropout == 0 ? Tensor<double>() : factors_of(n, dropout, Rng(seed)));
  const double scale = std::max({largest(plain.dq), largest(plain.dk), largest(plain.dv)});
  KeepPattern<T> tap;
  double most = 0;
  for (PatternTap<T>* watch :
       {static_cast<PatternTap<T>*>(nullptr), static_cast<PatternTap<T>*>(&tap)}) {
    const auto f = [&](const std::vector<Var<T>>& x) {
      Rng rng(seed);
      return attention(x[0], x[1], x[2],
                       {.heads = n.heads,
                        .kv_heads = n.kv_heads,
                        .mask = mask,
                        .dropout = dropout,
                        .random = &rng,
                        .tap = watch});
    };
    const Pass<T> found = pass<T>(f, {q, k, v}, dy);
    most = std::max(
        {most, relative_gap(found.y, plain.y), relative_gap(found.d[0], plain.dq, scale),
         relative_gap(found.d[1], plain.dk, scale), relative_gap(found.d[2], plain.dv, scale)});
  }
  return std::max(most, relative_gap(tap.pattern, plain.pattern));
}

template <Real T>
void check_sights(const std::vector<Sight>& sights,
                  const std::vector<std::pair<Index, Index>>& sizes, Index heads = 2,
                  Index kv_heads = 2, Index batch = 2, double dropout = 0) {
  const Threads one(1);  // thousands of tiny regions; thread counts have tests of their own
  for (const Sight& sight : sights)
    for (const auto& [t, s] : sizes) {
      const PlainSizes n{batch, t, s, heads, kv_heads, 3, 2, 1 / std::sqrt(3.0)};
      CAPTURE(sight.name, t, s);
      const auto added = [&](Index b, Index h, Index i, Index j) {
        return sight.added(n, b, h, i, j);
      };
      CHECK(gap<T>(n, sight.mask(n), added, dropout) < kPlainClose<T>);
    }
}

template <Real T>
void check_sizes(const std::vector<std::pair<Index, Index>>& sizes, Index heads = 2,
                 Index kv_heads = 2) {
  check_sights<T>(sights(), sizes, heads, kv_heads);
}

}  // namespace

TEMPLATE_TEST_CASE("attention equals plain loops for as many queries as keys", "[ops][attention]",
                   float, double) {
  std::vector<std::pair<Index, Index>> sizes;
  for (Index t = 1; t <= 70; ++t) sizes.emplace_back(t, t);
  check_sizes<TestType>(sizes);
}

TEMPLATE_TEST_CASE("attention equals plain loops for fewer queries than keys", "[ops][attention]",
                   float, double) {
  std::vector<std::pair<Index, Index>> sizes;
  for (Index t = 1; t <= 70; ++t)
    for (const Index s : {t + 1, t + 7, Index{70}})
      if (s > t) sizes.emplace_back(t, s);
  check_sizes<TestType>(sizes);
}

TEMPLATE_TEST_CASE("attention equals plain loops for more queries than keys", "[ops][attention]",
                   float, double) {
  // With a causal mask the first T - S queries see nothing: whole blocks of them from T = 33 on.
  check_sizes<TestType>({{2, 1}, {5, 3}, {33, 1}, {34, 32}, {65, 33}, {70, 5}, {70, 69}, {130, 1}});
}

TEMPLATE_TEST_CASE("attention equals plain loops where heads share keys and values",
                   "[ops][attention]", float, double) {
  const std::vector<std::pair<Index, Index>> sizes = {{1, 1}, {5, 5}, {3, 9}, {35, 35}, {66, 70}};
  check_sizes<TestType>(sizes, 4, 2);
  check_sizes<TestType>(sizes, 3, 1);
  check_sizes<TestType>(sizes, 6, 2);
}

TEMPLATE_TEST_CASE("attention equals plain loops where blocks skip keys at both ends",
                   "[ops][attention]", float, double) {
  check_sizes<TestType>({{100, 100}, {129, 129}, {150, 150}, {150, 130}, {130, 150}}, 4, 2);
}

TEMPLATE_TEST_CASE("attention equals plain loops where sequences and heads see differently",
                   "[ops][attention]", float, double) {
  check_sights<TestType>(mixed_sights(), kSomeSizes, 2, 2, 3);
}

TEMPLATE_TEST_CASE("attention equals plain loops where they share keys and values as well",
                   "[ops][attention]", float, double) {
  check_sights<TestType>(mixed_sights(), {{5, 5}, {9, 4}, {34, 70}, {130, 150}}, 6, 2, 3);
}

TEMPLATE_TEST_CASE("attention with dropout equals plain loops under every mask",
                   "[ops][attention][dropout]", float, double) {
  const std::vector<std::pair<Index, Index>> sizes = {{1, 6}, {5, 5}, {70, 40}, {66, 67}};
  check_sights<TestType>(sights(), sizes, 4, 2, 3, 0.3);
  check_sights<TestType>(mixed_sights(), sizes, 4, 2, 3, 0.3);
}

TEST_CASE("attention takes another scale", "[ops][attention]") {
  const PlainSizes n{1, 6, 6, 1, 1, 3, 2, 0.25};
  const Tensor<double> q = random_tensor<double>({1, 6, 3}, 1),
                       k = random_tensor<double>({1, 6, 3}, 2),
                       v = random_tensor<double>({1, 6, 2}, 3),
                       dy = random_tensor<double>({1, 6, 2}, 4);
  const PlainAttention plain = plain_attention(
      n, q, k, v, dy, [](Index, Index, Index t, Index s) { return seen_if(s <= t); });
  const Pass<double> found = pass<double>(
      [](const auto& x) { return attention(x[0], x[1], x[2], {.scale = 0.25}); }, {q, k, v}, dy);
  CHECK(relative_gap(found.y, plain.y) < 1e-14);
  CHECK(relative_gap(found.d[0], plain.dq) < 1e-13);
  CHECK(relative_gap(found.d[1], plain.dk) < 1e-13);
}
