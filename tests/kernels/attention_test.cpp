// The blocks of attention, and its gradients with and without the pattern that was kept.
#include "kernels/attention.hpp"

#include <algorithm>
#include <array>

#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using kernels::AttentionPlan;
using kernels::Block;
using test::random_tensor;
using test::same_bits;

namespace {

/// Which keys a query sees: [first(t), end(t)), less what is struck.
struct Sight {
  const char* name;
  Index (*first)(Index t);
  Index (*end)(Index t);
  bool (*struck)(Index t, Index s);
};

Index none(Index) { return 0; }
Index up_to_itself(Index t) { return t + 1; }
Index twenty_back(Index t) { return std::max<Index>(0, t - 19); }
Index its_document(Index t) { return t / 50 * 50; }
bool nothing(Index, Index) { return false; }
bool some(Index t, Index s) { return t != s && (t + s) % 3 == 0; }

constexpr Sight kCausal{"causal", none, up_to_itself, nothing};
constexpr Sight kHoles{"holes", none, up_to_itself, some};
constexpr Sight kWindow{"window", twenty_back, up_to_itself, nothing};
constexpr Sight kDocuments{"documents", its_document, up_to_itself, some};

/// Six heads that share two of keys and values, over t positions. Padded, the second of the two
/// sequences sees a third of the keys.
template <Real T>
struct Setting {
  AttentionPlan<T> plan;
  std::vector<std::uint8_t> allowed;
  Tensor<T> q, k, v, dy;

  Setting(const Sight& sight, Index t, double dropout = 0, bool padded = false)
      : plan{.batch = 2, .queries = t, .keys = t, .heads = 6, .kv_heads = 2, .d = 3, .dv = 5},
        allowed(static_cast<std::size_t>(t * t)),
        q(random_tensor<T>({2, t, 6 * 3}, 1)),
        k(random_tensor<T>({2, t, 2 * 3}, 2)),
        v(random_tensor<T>({2, t, 2 * 5}, 3)),
        dy(random_tensor<T>({2, t, 6 * 5}, 4)) {
    std::vector<kernels::SeenKeys> seen;
    for (Index i = 0; i < t; ++i) {
      for (Index s = 0; s < t; ++s)
        allowed[static_cast<std::size_t>(i * t + s)] = sight.struck(i, s) ? 0 : 1;
      const bool holes = sight.struck != nothing;
      seen.push_back({sight.first(i), sight.end(i), holes ? allowed.data() + i * t : nullptr});
    }
    std::vector<std::vector<kernels::SeenKeys>> all = {seen};
    if (padded) {
      for (kernels::SeenKeys& row : seen) row.end = std::clamp(t / 3, row.first, row.end);
      all.push_back(seen);
    }
    plan.show(std::move(all));
    plan.dropout = dropout;
    if (dropout > 0) plan.random = Rng(7);
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

  /// dq, dk and dv, those that are asked for, after a forward that keeps the pattern or does not.
  std::vector<Tensor<T>> gradients(bool keep, std::array<bool, 3> wanted = {true, true, true}) {
    std::vector<kernels::RowStats<T>> stats(static_cast<std::size_t>(12 * plan.queries));
    Tensor<T> y = Tensor<T>::uninitialized(dy.shape()), kept;
    if (keep) kept = Tensor<T>::uninitialized({12, plan.kept_size()});
    const kernels::Saved<T> saved{kept.data(), stats.data()};
    const auto read = [](const Tensor<T>& x) { return x.data(); };
    kernels::attention(plan, read(q), read(k), read(v), y.data(), saved);
    std::vector<Tensor<T>> d(3);
    const std::array<Shape, 3> shapes = {q.shape(), k.shape(), v.shape()};
    for (std::size_t i = 0; i < 3; ++i)
      if (wanted[i]) d[i] = Tensor<T>::uninitialized(shapes[i]);
    kernels::attention_backward(plan, read(q), read(k), read(v), saved, read(dy), d[0].data(),
                                d[1].data(), d[2].data());
    return d;
  }
};

/// Calls f(setting) for each sight, at sizes of one and of several blocks, without and with
/// dropout, and with and without padding.
template <Real T, class F>
void for_each_setting(F f) {
  for (const Sight& sight : {kCausal, kHoles, kWindow, kDocuments})
    for (const Index t : {5, 35, 70, 150})
      for (const double dropout : {0.0, 0.3})
        for (const bool padded : {false, true}) {
          CAPTURE(sight.name, t, dropout, padded);
          Setting<T> setting(sight, t, dropout, padded);
          f(setting);
        }
}

/// A block in the words of the test.
struct Cut {
  Index begin, end, first, last, at;
  friend bool operator==(const Cut&, const Cut&) = default;
};

std::vector<Cut> cuts(const AttentionPlan<float>& plan, Index sequence = 0) {
  std::vector<Cut> all;
  for (const Block& b : plan.view(sequence).blocks)
    all.push_back({b.begin, b.end, b.first, b.last, b.at});
  return all;
}

}  // namespace

TEMPLATE_TEST_CASE("a kept pattern and one computed again give the same gradients",
                   "[kernels][attention]", float, double) {
  using T = TestType;
  for_each_setting<T>([](Setting<T>& s) {
    const auto kept = s.gradients(true), again = s.gradients(false);
    for (std::size_t i = 0; i < 3; ++i) CHECK(same_bits(kept[i], again[i]));
  });
}

TEMPLATE_TEST_CASE("a gradient does not depend on which others are wanted", "[kernels][attention]",
                   float, double) {
  using T = TestType;
  for_each_setting<T>([](Setting<T>& s) {
    const auto all = s.gradients(false);
    for (std::size_t i = 0; i < 3; ++i) {
      std::array<bool, 3> only{}, others{true, true, true};
      only[i] = true;
      others[i] = false;
      CHECK(same_bits(s.gradients(false, only)[i], all[i]));
      const auto rest = s.gradients(true, others);
      for (std::size_t j = 0; j < 3; ++j)
        if (j != i) CHECK(same_bits(rest[j], all[j]));
    }
  });
}

TEST_CASE("blocks of rows skip the keys that none of them sees", "[kernels][attention]") {
  const auto of = [](const Sight& sight, Index t) { return Setting<float>(sight, t).plan; };
  using Cuts = std::vector<Cut>;
  CHECK(cuts(of(kCausal, 150)) == Cuts{{0, 48, 0, 48, 0},
                                       {48, 96, 0, 96, 2304},
                                       {96, 144, 0, 144, 6912},
                                       {144, 150, 0, 150, 13824}});
  // Row 48 sees keys from 29 on, row 96 from 77, row 144 from 125; a block starts at a multiple
  // of 16.
  CHECK(cuts(of(kWindow, 150)) == Cuts{{0, 48, 0, 48, 0},
                                       {48, 96, 16, 96, 2304},
                                       {96, 144, 64, 144, 6144},
                                       {144, 150, 112, 150, 9984}});
  // Documents begin at 0, 50 and 100.
  CHECK(cuts(of(kDocuments, 150)) == Cuts{{0, 48, 0, 48, 0},
                                          {48, 96, 0, 96, 2304},
                                          {96, 144, 48, 144, 6912},
                                          {144, 150, 96, 150, 11520}});
  CHECK(cuts(of(kCausal, 50)) == Cuts{{0, 32, 0, 32, 0}, {32, 50, 0, 50, 1024}});
  CHECK(of(kWindow, 150).kept_size() == 9984 + 6 * 38);
}

TEST_CASE("each sequence skips its own padding", "[kernels][attention]") {
  const AttentionPlan<float> plan = Setting<float>(kCausal, 150, 0, true).plan;
  CHECK(cuts(plan) == cuts(Setting<float>(kCausal, 150).plan));
  CHECK(cuts(plan, 1) == std::vector<Cut>{{0, 48, 0, 48, 0},
                                          {48, 96, 0, 50, 2304},
                                          {96, 144, 0, 50, 4704},
                                          {144, 150, 0, 50, 7104}});
  CHECK(plan.kept_size() == 13824 + 6 * 150);  // that of the longer one
  CHECK(plan.pairs() == 150 * 151 / 2 + 50 * 51 / 2 + 100 * 50);
  // Sequences that see alike share one view.
  const AttentionPlan<float> alike = Setting<float>(kCausal, 150).plan;
  CHECK(&alike.view(1) == &alike.view(0));
  CHECK(alike.pairs() == 2 * 150 * 151 / 2);
}

TEST_CASE("rows that see nothing take no part in their block", "[kernels][attention]") {
  AttentionPlan<float> plan{.batch = 1, .queries = 150, .keys = 200};
  std::vector<kernels::SeenKeys> seen(150);
  CHECK(plan.kept_size() == 0);
  seen[70] = {.first = 37, .end = 41};
  seen[80] = {.first = 90, .end = 90};
  seen[127] = {.first = 33, .end = 35};
  plan.show({seen});
  CHECK(cuts(plan) ==
        std::vector<Cut>{
            {0, 48, 0, 0, 0}, {48, 96, 32, 41, 0}, {96, 144, 32, 35, 432}, {144, 150, 0, 0, 576}});
  CHECK(plan.kept_size() == 576);
  CHECK(plan.pairs() == 6);
}
