// Fused attention against plain loops, at every size around the borders of its blocks.
#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/plain_attention.hpp"
#include "support/taps.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

template <Real T>
constexpr double kClose = std::same_as<T, double> ? 1e-12 : 1e-6;

/// What a mask lets a query see, said a second time in the test's own words.
struct Sight {
  std::string name;
  std::function<Mask(Index t, Index s)> mask;
  std::function<bool(Index t, Index s, Index queries, Index keys)> sees;
};

const auto hole = [](Index t, Index s) { return t % 11 != 2 && (t * 7 + s * 3) % 5 != 0; };

/// A sliding window, and documents packed into one sequence: whole stretches of keys go unseen.
const auto near = [](Index t, Index s) { return s <= t && s > t - 20; };
const auto same_document = [](Index t, Index s) { return s <= t && s / 45 == t / 45; };

std::vector<Sight> sights() {
  return {{"causal", [](Index, Index) { return causal(); },
           [](Index t, Index s, Index n, Index m) { return s <= t + m - n; }},
          {"everything", [](Index, Index) { return everything(); },
           [](Index, Index, Index, Index) { return true; }},
          {"allow", [](Index n, Index m) { return allow(n, m, hole); },
           [](Index t, Index s, Index, Index) { return hole(t, s); }},
          {"causal with holes", [](Index n, Index m) { return causal() & allow(n, m, hole); },
           [](Index t, Index s, Index n, Index m) { return s <= t + m - n && hole(t, s); }},
          {"window", [](Index n, Index m) { return allow(n, m, near); },
           [](Index t, Index s, Index, Index) { return near(t, s); }},
          {"documents", [](Index n, Index m) { return allow(n, m, same_document); },
           [](Index t, Index s, Index, Index) { return same_document(t, s); }}};
}

double largest(const Tensor<double>& x) {
  double most = 0;
  for (const double v : x.values()) most = std::max(most, std::fabs(v));
  return most;
}

/// The largest gap, over the result, the pattern and the three gradients. Gradients are measured
/// against the largest of the three: where the softmax is saturated, those of q and k are small
/// differences of larger numbers.
template <Real T>
double gap(const PlainSizes& n, const Mask& mask, FunctionRef<bool(Index t, Index s)> sees) {
  const auto seed = static_cast<std::uint64_t>(n.t * 1000 + n.s);
  const auto draw = [&](Index rows, Index width, std::uint64_t i) {
    return random_tensor<T>({n.b, rows, width}, 4 * seed + i);
  };
  const Tensor<T> q = draw(n.t, n.heads * n.d, 0), k = draw(n.s, n.kv_heads * n.d, 1),
                  v = draw(n.s, n.kv_heads * n.dv, 2), dy = draw(n.t, n.heads * n.dv, 3);
  const PlainAttention plain =
      plain_attention(n, as<double>(q), as<double>(k), as<double>(v), as<double>(dy), sees);
  KeepPattern<T> tap;
  Attend<T> how{.heads = n.heads, .kv_heads = n.kv_heads, .mask = mask};
  const auto f = [&](const std::vector<Var<T>>& x) { return attention(x[0], x[1], x[2], how); };
  const Pass<T> found = pass<T>(f, {q, k, v}, dy);
  how.tap = &tap;
  f({q, k, v});
  const double scale = std::max({largest(plain.dq), largest(plain.dk), largest(plain.dv)});
  return std::max({relative_gap(found.y, plain.y), relative_gap(tap.pattern, plain.pattern),
                   relative_gap(found.d[0], plain.dq, scale),
                   relative_gap(found.d[1], plain.dk, scale),
                   relative_gap(found.d[2], plain.dv, scale)});
}

template <Real T>
void check_sizes(const std::vector<std::pair<Index, Index>>& sizes, Index heads = 2,
                 Index kv_heads = 2) {
  const Threads one(1);  // thousands of tiny regions; thread counts have tests of their own
  for (const Sight& sight : sights())
    for (const auto& [t, s] : sizes) {
      const PlainSizes n{2, t, s, heads, kv_heads, 3, 2, 1 / std::sqrt(3.0)};
      CAPTURE(sight.name, t, s);
      const auto sees = [&, queries = t, keys = s](Index i, Index j) {
        return sight.sees(i, j, queries, keys);
      };
      CHECK(gap<T>(n, sight.mask(t, s), sees) < kClose<T>);
    }
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

TEST_CASE("attention takes another scale", "[ops][attention]") {
  const PlainSizes n{1, 6, 6, 1, 1, 3, 2, 0.25};
  const Tensor<double> q = random_tensor<double>({1, 6, 3}, 1),
                       k = random_tensor<double>({1, 6, 3}, 2),
                       v = random_tensor<double>({1, 6, 2}, 3),
                       dy = random_tensor<double>({1, 6, 2}, 4);
  const PlainAttention plain =
      plain_attention(n, q, k, v, dy, [](Index t, Index s) { return s <= t; });
  const Pass<double> found = pass<double>(
      [](const auto& x) { return attention(x[0], x[1], x[2], {.scale = 0.25}); }, {q, k, v}, dy);
  CHECK(relative_gap(found.y, plain.y) < 1e-14);
  CHECK(relative_gap(found.d[0], plain.dq) < 1e-13);
  CHECK(relative_gap(found.d[1], plain.dk) < 1e-13);
}
