// What a mask hides has no effect on attention, whatever is there: NaN and infinities included.
#include <cstring>
#include <set>

#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/sights.hpp"
#include "support/taps.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

/// Rows of a (B,N,C) tensor.
using Rows = std::set<std::pair<Index, Index>>;

Rows some_rows(const PlainSizes& n, Index of, Rng& rng) {
  Rows rows;
  for (Index b = 0; b < n.b; ++b)
    for (Index i = 0; i < of; ++i)
      if (rng.uniform() < 0.1) rows.emplace(b, i);
  return rows;
}

/// x with those rows filled: with zeros, or in turn with NaN and both infinities.
template <Real T>
Tensor<T> filled(Tensor<T> x, const Rows& rows, bool odd) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const T values[] = {std::numeric_limits<T>::quiet_NaN(), kInfinity, -kInfinity};
  const Index time = x.shape()[1], c = x.shape()[2];
  T* out = x.data();
  for (const auto& [b, i] : rows)
    for (Index j = 0; j < c; ++j)
      out[(b * time + i) * c + j] = odd ? values[static_cast<std::size_t>((i + j) % 3)] : T(0);
  return x;
}

/// How many elements of head h of row i of two (B,N,C) tensors differ in a bit.
template <Real T>
int differences(const Tensor<T>& a, const Tensor<T>& b, Index row, Index h, Index width) {
  int count = 0;
  const auto first = static_cast<std::size_t>(row * a.shape()[2] + h * width);
  for (std::size_t i = first; i < first + static_cast<std::size_t>(width); ++i)
    count += std::memcmp(&a.values()[i], &b.values()[i], sizeof(T)) == 0 ? 0 : 1;
  return count;
}

/// What of one call may depend on the rows that are filled, as the test knows the mask.
class Reach {
 public:
  Reach(const PlainSizes& n, Added added, const Rows& q, const Rows& kv, const Rows& dy)
      : n_(n), added_(added) {
    for (Index b = 0; b < n.b; ++b)
      for (Index h = 0; h < n.heads; ++h)
        for (Index t = 0; t < n.t; ++t) {
          bool sees = false;
          for (Index s = 0; s < n.s; ++s) sees = sees || (kv.contains({b, s}) && seen(b, h, t, s));
          const bool row = q.contains({b, t}) || sees;
          y_.push_back(row);
          d_.push_back(row || dy.contains({b, t}));
        }
  }
  [[nodiscard]] bool of_y(Index b, Index h, Index t) const { return y_[at(b, h, t)]; }
  [[nodiscard]] bool of_dq(Index b, Index h, Index t) const { return d_[at(b, h, t)]; }
  [[nodiscard]] bool of_key(Index b, Index kv, Index s) const {
    const Index group = n_.heads / n_.kv_heads;
    for (Index h = kv * group; h < (kv + 1) * group; ++h)
      for (Index t = 0; t < n_.t; ++t)
        if (of_dq(b, h, t) && seen(b, h, t, s)) return true;
    return false;
  }

 private:
  [[nodiscard]] bool seen(Index b, Index h, Index t, Index s) const {
    return added_(b, h, t, s) != kUnseen;
  }
  [[nodiscard]] std::size_t at(Index b, Index h, Index t) const {
    return static_cast<std::size_t>((b * n_.heads + h) * n_.t + t);
  }
  PlainSizes n_;
  Added added_;
  std::vector<bool> y_, d_;
};

/// Elements that were compared, and that differ.
struct Count {
  int compared = 0, different = 0;
};

/// Fills some queries, keys with their values, and upstream gradients with what is not finite, and
/// again with zeros: all that the mask keeps from them must have the same bits.
template <Real T>
Count compare(const PlainSizes& n, const Mask& mask, Added added, double dropout, bool watched,
              std::uint64_t seed) {
  Rng rng(seed);
  const Rows odd_q = some_rows(n, n.t, rng), odd_k = some_rows(n, n.s, rng),
             odd_dy = some_rows(n, n.t, rng);
  const auto run = [&](bool odd) {
    const auto draw = [&](Index rows, Index width, std::uint64_t i) {
      return random_tensor<T>({n.b, rows, width}, 4 * seed + i);
    };
    KeepPattern<T> tap;
    const auto f = [&](const std::vector<Var<T>>& x) {
      Rng draws(seed);
      return attention(x[0], x[1], x[2],
                       {.heads = n.heads,
                        .kv_heads = n.kv_heads,
                        .mask = mask,
                        .dropout = dropout,
                        .random = &draws,
                        .tap = watched ? &tap : nullptr});
    };
    return pass<T>(f,
                   {filled(draw(n.t, n.heads * n.d, 0), odd_q, odd),
                    filled(draw(n.s, n.kv_heads * n.d, 1), odd_k, odd),
                    filled(draw(n.s, n.kv_heads * n.dv, 2), odd_k, odd)},
                   filled(draw(n.t, n.heads * n.dv, 3), odd_dy, odd));
  };
  const Pass<T> odd = run(true), zero = run(false);
  const Reach reach(n, added, odd_q, odd_k, odd_dy);
  Count count;
  const auto look = [&](bool reached, const Tensor<T>& a, const Tensor<T>& b, Index row, Index h,
                        Index width) {
    if (reached) return;
    count.compared += static_cast<int>(width);
    count.different += differences(a, b, row, h, width);
  };
  for (Index b = 0; b < n.b; ++b) {
    for (Index h = 0; h < n.heads; ++h)
      for (Index t = 0; t < n.t; ++t) {
        look(reach.of_y(b, h, t), odd.y, zero.y, b * n.t + t, h, n.dv);
        look(reach.of_dq(b, h, t), odd.d[0], zero.d[0], b * n.t + t, h, n.d);
      }
    for (Index h = 0; h < n.kv_heads; ++h)
      for (Index s = 0; s < n.s; ++s) {
        const bool reached = reach.of_key(b, h, s);
        look(reached, odd.d[1], zero.d[1], b * n.s + s, h, n.d);
        look(reached, odd.d[2], zero.d[2], b * n.s + s, h, n.dv);
      }
  }
  return count;
}

}  // namespace

TEMPLATE_TEST_CASE("what the mask hides has no effect, NaN and infinities included",
                   "[ops][attention][mask]", float, double) {
  const Threads one(1);
  std::vector<Sight> all = sights(), mixed = mixed_sights();
  all.insert(all.end(), mixed.begin(), mixed.end());
  int compared = 0;
  std::uint64_t seed = 1;
  for (const Sight& sight : all)
    for (const auto& [t, s] : kSomeSizes)
      for (const bool watched : {false, true})
        for (const double dropout : {0.0, 0.3}) {
          const PlainSizes n{3, t, s, 4, 2, 3, 2, 1 / std::sqrt(3.0)};
          CAPTURE(sight.name, t, s, watched, dropout, seed);
          const auto added = [&](Index b, Index h, Index i, Index j) {
            return sight.added(n, b, h, i, j);
          };
          const Count count = compare<TestType>(n, sight.mask(n), added, dropout, watched, seed++);
          CHECK(count.different == 0);
          compared += count.compared;
        }
  CHECK(compared > 100'000);  // enough was out of reach
}

TEMPLATE_TEST_CASE("padding may be anything at widths of models", "[ops][attention][mask]", float,
                   double) {
  using T = TestType;
  for (const Index d : {16, 64}) {
    const PlainSizes n{2, 100, 100, 2, 2, d, d, 1 / std::sqrt(static_cast<double>(d))};
    const auto visible = [](Index, Index, Index t, Index s) { return seen_if(s <= t && s < 60); };
    const Count count = compare<T>(n, causal() & keys_below({60, 60}), visible, 0, false,
                                   static_cast<std::uint64_t>(d));
    CHECK(count.different == 0);
    CHECK(count.compared > 1000);
  }
}

TEMPLATE_TEST_CASE("a single query does not see what its mask hides", "[ops][attention][mask]",
                   float, double) {
  using T = TestType;
  const auto draw = [](Index rows, std::uint64_t seed) {
    return random_tensor<T>({1, rows, 8}, seed);
  };
  const Mask mask = allow(1, 40, [](Index, Index s) { return s % 3 != 0; }) & keys_below({30});
  Rows hidden;
  for (Index s = 0; s < 40; ++s)
    if (s % 3 == 0 || s >= 30) hidden.emplace(0, s);
  const auto decode = [&](bool odd) {
    return attention<T>(draw(1, 1), filled(draw(40, 2), hidden, odd),
                        filled(draw(40, 3), hidden, odd), {.heads = 2, .mask = mask})
        .value();
  };
  CHECK(same_bits(decode(true), decode(false)));
}

TEMPLATE_TEST_CASE("keys without weight in a replaced pattern are not read",
                   "[ops][attention][mask]", float, double) {
  using T = TestType;
  Rows odd;
  for (Index s = 3; s < 6; ++s) odd.emplace(0, s);
  ReplacePattern<T> first_three([](Tensor<T>& p) {
    T* out = p.data();
    for (Index i = 0; i < p.size(); ++i) out[i] = i % 6 < 3 ? T(1) / 3 : T(0);
  });
  const auto run = [&](bool filled_odd) {
    const auto f = [&](const std::vector<Var<T>>& x) {
      return attention(x[0], x[1], x[2], {.heads = 2, .mask = causal(), .tap = &first_three});
    };
    const auto draw = [](std::uint64_t seed) { return random_tensor<T>({1, 6, 4}, seed); };
    return pass<T>(f, {draw(1), draw(2), filled(draw(3), odd, filled_odd)}, draw(4));
  };
  const Pass<T> found = run(true), wanted = run(false);
  CHECK(same_bits(found.y, wanted.y));
  CHECK(same_bits(found.d[2], wanted.d[2]));
}

TEMPLATE_TEST_CASE("a NaN that is seen is told, and only where it is seen",
                   "[ops][attention][mask]", float, double) {
  using T = TestType;
  Tensor<T> v = random_tensor<T>({1, 5, 2}, 3);
  v.data()[2 * 2] = std::numeric_limits<T>::quiet_NaN();  // key 2, column 0
  const Tensor<T> y = attention<T>(random_tensor<T>({1, 5, 2}, 1), random_tensor<T>({1, 5, 2}, 2),
                                   v, {.mask = causal()})
                          .value();
  for (Index t = 0; t < 5; ++t) {
    CHECK(std::isnan(y.values()[static_cast<std::size_t>(2 * t)]) == (t >= 2));
    CHECK_FALSE(std::isnan(y.values()[static_cast<std::size_t>(2 * t + 1)]));
  }
}

TEMPLATE_TEST_CASE("masked_softmax is 0 where nothing is seen, in rows with a NaN too",
                   "[ops][mask]", float, double) {
  using T = TestType;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const Mask mask = allow(1, 4, [](Index, Index s) { return s != 1; });
  const auto f = [&](const std::vector<Var<T>>& x) { return masked_softmax(x[0], mask); };
  const Pass<T> found =
      pass<T>(f, {Tensor<T>({1, 4}, {0, 1, nan, 2})}, Tensor<T>({1, 4}, {1, 2, 3, 4}));
  CHECK(found.y.values()[1] == 0);
  CHECK(found.d[0].values()[1] == 0);
  CHECK(std::isnan(found.y.values()[0]));
}
