#include "headwise/study/roles.hpp"

#include "headwise/study/study.hpp"
#include "support/catch.hpp"
#include "support/models.hpp"

using namespace headwise;
using namespace headwise::study;

namespace {

constexpr Index kTime = 32, kVocab = 20, kPeriod = 8;

/// Heads that know positions alone: each looks its offset back, and about evenly where that is
/// before the beginning. The stream is one-hot of the position.
Decoder<double> looking_back(const std::vector<Index>& offsets) {
  const Index heads = std::ssize(offsets), width = heads * kTime;
  Rng rng(1);
  Decoder<double> model({.vocab = kVocab,
                         .layers = 1,
                         .heads = heads,
                         .width = width,
                         .context = kTime,
                         .attention_only = true},
                        rng);
  for_each_param(model, [](const std::string& name, Param<double>& p) {
    p.value = Tensor<double>::full(p.value.shape(), name.ends_with("ln1.weight") ? 1 : 0);
  });
  const auto set = [&](Param<double>& p, Index row, Index column, double x) {
    p.value.data()[row * width + column] = x;
  };
  const double mean = 1 / static_cast<double>(width), variance = mean - mean * mean;
  const double score = 8;  // more than that of any other key
  auto& attention = model.blocks[0].attn;
  for (Index t = 0; t < kTime; ++t) {
    set(model.pos.weight, t, t, 1);
    for (Index h = 0; h < heads; ++h) {
      const Index target = t - offsets[static_cast<std::size_t>(h)];
      set(attention.w_k.weight, h * kTime + t, t, 1);
      if (target >= 0)
        set(attention.w_q.weight, h * kTime + target, t, score * std::sqrt(kTime) * variance);
    }
  }
  return model;
}

Sequences sequences_of(const Ids& ids) {
  return {{ids, ids}, std::vector<Index>(static_cast<std::size_t>(ids.shape[0]), ids.shape[1])};
}

/// Random tokens, twice, that all repeat at the same offset, as they should not. They are shorter
/// than the data, so that these heads, sharper there, would sooner be named for what they do here.
Sequences repeated_alike(Index count) {
  Rng rng(3);
  std::vector<Id> ids;
  for (Index b = 0; b < count; ++b) {
    const std::vector<Index> order = rng.permutation(kVocab);
    for (Index i = 0; i < 2 * kPeriod; ++i)
      ids.push_back(static_cast<Id>(order[static_cast<std::size_t>(i % kPeriod)]));
  }
  return sequences_of({{count, 2 * kPeriod}, std::move(ids)});
}

}  // namespace

TEST_CASE("a head that looks three back is named so", "[study]") {
  const Sets sets{.data = sequences_of(test::random_ids({20, kTime}, kVocab, 2))};
  const auto heads = study_heads(looking_back({3, 1, 0}), sets, 1);
  CHECK(heads[0].role == Score::fixed_offset);
  CHECK(heads[0].label == "offset -3");
  CHECK(heads[1].label == "previous token");
  CHECK(heads[2].label == "current token");
}

TEST_CASE("what a fixed offset explains is no induction", "[study]") {
  // Both find on every query what they are scored for: the token after the earlier copy, the copy.
  const Sets sets{.data = sequences_of(test::random_ids({20, kTime}, kVocab, 2)),
                  .repeated = repeated_alike(20)};
  const auto heads = study_heads(looking_back({kPeriod - 1, kPeriod}), sets, 1);
  CHECK(heads[0].score(Score::prefix_matching)->value > 0.9);
  CHECK(heads[0].label == "offset -7");
  CHECK(heads[1].score(Score::duplicate_token)->value > 0.9);
  CHECK(heads[1].label == "offset -8");
  CHECK(role_groups(heads).size() == 2);  // of one role, at two offsets
}
