#include "headwise/study/sequences.hpp"

#include <set>

#include "support/catch.hpp"
#include "support/models.hpp"
#include "support/threads.hpp"

using namespace headwise;
using namespace headwise::study;

namespace {

Sequences random_like(Index vocab) {
  return {{test::random_ids({50, 40}, vocab, 1), test::random_ids({50, 40}, vocab, 2)},
          std::vector<Index>(50, 40)};
}

}  // namespace

TEST_CASE("repeated tokens repeat, at an offset of their own", "[study]") {
  const Sequences like = random_like(60);
  const Sequences repeated = *repeated_sequences(like, 30, 50, Id{0}, 4);
  std::set<Index> offsets;
  for (Index b = 0; b < repeated.count(); ++b) {
    const auto ids = repeated.ids(b);
    REQUIRE(std::ssize(ids) == 50);
    CHECK(ids[0] == 0);
    Index n = 1;
    while (ids[static_cast<std::size_t>(1 + n)] != ids[1]) ++n;
    offsets.insert(n);
    CHECK((n >= 8 && n <= 24));
    const std::set<Id> once(ids.begin() + 1, ids.begin() + 1 + n);
    CHECK(std::ssize(once) == n);
    CHECK(!once.contains(0));
    for (Index i = 1; i < 50; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (i > n) CHECK(ids[at] == ids[static_cast<std::size_t>(i - n)]);
      const Id target = repeated.batch.targets.values[static_cast<std::size_t>(b * 50 + i)];
      CHECK(target == (i <= n   ? kIgnore
                       : i < 49 ? ids[at + 1]
                                : ids[at + 1 - static_cast<std::size_t>(n)]));
    }
  }
  CHECK(offsets.size() > 8);
}

TEST_CASE("repeated tokens have several lengths in short contexts and small vocabularies too",
          "[study]") {
  const auto periods = [](Index vocab, Index time) {
    const Sequences all = *repeated_sequences(random_like(vocab), 40, time, Id{0}, 4);
    std::set<Index> found;
    for (Index b = 0; b < all.count(); ++b) {
      const auto ids = all.ids(b);
      Index n = 1;
      while (ids[static_cast<std::size_t>(1 + n)] != ids[1]) ++n;
      found.insert(n);
    }
    return found;
  };
  CHECK(periods(60, 16) == std::set<Index>{3, 4, 5, 6, 7});
  CHECK(periods(9, 64) == std::set<Index>{4, 5, 6, 7, 8});
}

TEST_CASE("repeated tokens leave the commonest and the rarest aside", "[study]") {
  Sequences like = random_like(50);
  for (std::size_t i = 0; i < like.batch.inputs.values.size(); ++i)
    if (i % 4 == 0) like.batch.inputs.values[i] = static_cast<Id>(i % 8 == 0 ? 7 : 9);
  const Sequences repeated = *repeated_sequences(like, 100, 40, std::nullopt, 4);
  const std::set<Id> seen(repeated.batch.inputs.values.begin(), repeated.batch.inputs.values.end());
  CHECK(!seen.contains(7));
  CHECK(!seen.contains(9));
  CHECK(seen.size() == 46);
}

TEST_CASE("repeated tokens need two kinds and room", "[study]") {
  CHECK(!repeated_sequences(random_like(2), 3, 40, Id{0}, 1));
  CHECK(!repeated_sequences(random_like(9), 3, 4, Id{0}, 1));
  CHECK(repeated_sequences(random_like(2), 3, 40, std::nullopt, 1));
}

TEST_CASE("a sequence of a task ends with its last target that counts", "[study]") {
  struct Padded : Source {
    [[nodiscard]] Batch train(Index, Rng&) const override { return {}; }
    [[nodiscard]] Batch valid(Index, Rng&) const override {
      return {Ids({2, 4}, {1, 2, 3, 0, 1, 2, 3, 4}),
              Ids({2, 4}, {kIgnore, 3, kIgnore, kIgnore, 2, 3, 4, 5})};
    }
  };
  const Sequences data = data_sequences(Padded(), 2, 1);
  CHECK(data.lengths == std::vector<Index>{2, 4});
  CHECK(std::vector<Id>(data.ids(0).begin(), data.ids(0).end()) == std::vector<Id>{1, 2});
  const Sequences second = data.range(1, 2);
  CHECK(second.lengths == std::vector<Index>{4});
  CHECK(std::vector<Id>(second.ids(0).begin(), second.ids(0).end()) == std::vector<Id>{1, 2, 3, 4});
}

TEST_CASE("a text of no more tokens than the context is one sequence of all of them", "[study]") {
  for (const Index n : {2, 3, 7, 8, 9}) {
    CAPTURE(n);
    std::vector<Id> ids;
    for (Index i = 0; i < n; ++i) ids.push_back(static_cast<Id>(i));
    const Sequences data = data_sequences(TextSource(Split{{}, ids, false}, 8), 100, 1);
    REQUIRE(data.count() == 1);
    const Index time = std::min<Index>(n, 8);
    CHECK(data.lengths == std::vector<Index>{time});
    REQUIRE(data.time() == time);
    for (Index i = 0; i < time; ++i) {
      CHECK(data.batch.inputs.values[static_cast<std::size_t>(i)] == i);
      CHECK(data.batch.targets.values[static_cast<std::size_t>(i)] ==
            (i + 1 < n ? i + 1 : kIgnore));
    }
  }
  for (const std::vector<Id>& ids : {std::vector<Id>{}, {3}})
    CHECK_THROWS_WITH(data_sequences(TextSource(Split{{}, ids, false}, 8), 100, 1),
                      fmt::format("text: got {} tokens, need at least 2", ids.size()));
}

TEST_CASE("equal sequences are one", "[study]") {
  // Rows 0 and 2 have equal tokens, one of them padding; row 3 has one token fewer.
  const Sequences all{{Ids({4, 3}, {1, 2, 5, 1, 3, 5, 1, 2, 6, 1, 7, 7}),
                       Ids({4, 3}, {2, 9, -100, 3, 8, -100, 2, 9, -100, 4, -100, -100})},
                      {2, 2, 2, 1}};
  const Sequences kept = distinct(all);
  CHECK(kept.lengths == std::vector<Index>{2, 2, 1});
  CHECK(kept.batch.inputs.values == std::vector<Id>{1, 2, 5, 1, 3, 5, 1, 7, 7});
  CHECK(kept.batch.targets.values == std::vector<Id>{2, 9, -100, 3, 8, -100, 4, -100, -100});
  CHECK(kept.batch.inputs.shape == Shape{3, 3});
}

TEST_CASE("no set that is studied has a sequence twice", "[study]") {
  const auto different = [](const Sequences& s) {
    std::set<std::vector<Id>> all;
    for (Index b = 0; b < s.count(); ++b) all.emplace(s.ids(b).begin(), s.ids(b).end());
    return std::ssize(all);
  };
  std::vector<Id> periodic;  // of period 2: windows begin with one or the other
  for (Id i = 0; i < 800; ++i) periodic.push_back(i % 2);
  const Sequences data = data_sequences(TextSource(Split{{}, periodic, false}, 8), 100, 1);
  CHECK(different(data) == data.count());
  CHECK(data.count() == 2);
  const Sequences repeated = *repeated_sequences(data, 25, 32, std::nullopt, 1);
  CHECK(different(repeated) == repeated.count());
  CHECK(repeated.count() == 2);  // 0 1 0 1 .. and 1 0 1 0 ..
  const Sequences three = *repeated_sequences(random_like(3), 25, 32, std::nullopt, 1);
  CHECK(different(three) == three.count());
  CHECK(three.count() > 6);
  CHECK(three.count() <= 12);
}

TEST_CASE("of a task's few validation sequences each is studied once", "[study]") {
  struct Five : Source {
    [[nodiscard]] Batch train(Index, Rng&) const override { return {}; }
    [[nodiscard]] Batch valid(Index batch, Rng&) const override {
      const std::vector<Id> ids(static_cast<std::size_t>(batch), 7);
      return {Ids({batch, 1}, ids), Ids({batch, 1}, ids)};
    }
    [[nodiscard]] Index valid_size() const override { return 5; }
    [[nodiscard]] Batch valid_range(Index first, Index count) const override {
      std::vector<Id> ids;
      for (Index i = first; i < first + count; ++i) ids.push_back(static_cast<Id>(i));
      return {Ids({count, 1}, ids), Ids({count, 1}, ids)};
    }
  };
  CHECK(data_sequences(Five(), 5, 1).batch.inputs.values == std::vector<Id>{0, 1, 2, 3, 4});
  CHECK(data_sequences(Five(), 4, 1).batch.inputs.values == std::vector<Id>{7});
}

TEST_CASE("patterns come block by block, the same as alone", "[study]") {
  const ModelConfig config{.vocab = 11, .layers = 2, .heads = 2, .width = 8, .context = 400};
  const Decoder<float> model = test::rough_decoder<float>(config, 3);
  const Sequences all{{test::random_ids({7, 400}, 11, 1), test::random_ids({7, 400}, 11, 2)},
                      std::vector<Index>(7, 400)};
  std::map<std::pair<Index, Index>, Tensor<float>> found;  // by layer and sequence
  Index largest = 0;
  for_each_pattern<float>(model, all, [&](const SeenLayer<float>& seen) {
    const auto& [layer, first, pattern, z] = seen;
    largest = std::max(largest, pattern.shape()[0]);
    const Index one = 2 * 400 * 400;
    for (Index b = 0; b < pattern.shape()[0]; ++b)
      found[{layer, first + b}] = Tensor<float>(
          {2, 400, 400}, pattern.values().subspan(static_cast<std::size_t>(b * one), one));
  });
  CHECK(found.size() == 14);
  CHECK(largest == 5);
  for_each_pattern<float>(model, all.range(6, 7), [&](const SeenLayer<float>& seen) {
    CHECK(seen.first == 0);
    // A product's last bits may depend on its number of rows, by the BLAS's kernels.
    CHECK(test::relative_gap(seen.pattern.reshape({2, 400, 400}), found[{seen.layer, 6}]) < 1e-5);
  });
}
