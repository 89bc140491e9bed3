#include "headwise/study/scores.hpp"

#include <cmath>

#include "headwise/study/study.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/known_heads.hpp"
#include "support/models.hpp"
#include "support/threads.hpp"

using namespace headwise;
using namespace headwise::study;
using test::KnownHeads;

namespace {

/// A mean, put together by hand.
struct Mean {
  double sum = 0;
  Index n = 0;
  void add(double x) { sum += x, ++n; }
  [[nodiscard]] double value() const { return sum / static_cast<double>(n); }
};

/// Every score of a head whose weights are known, from the definitions, a query at a time.
std::map<Score, double> by_hand(const Sequences& sequences, auto weight) {
  std::map<Score, Mean> means;
  std::vector<Mean> offsets(static_cast<std::size_t>(sequences.time() / 2 + 1));
  for (Index b = 0; b < sequences.count(); ++b) {
    const auto ids = sequences.ids(b);
    for (Index i = 0; i < std::ssize(ids); ++i) {
      const auto a = [&](Index j) { return weight(ids, i, j); };
      if (i > 0) means[Score::previous_token].add(a(i - 1));
      means[Score::current_token].add(a(i));
      means[Score::first_token].add(a(0));
      double duplicate = 0, follower = 0, entropy = 0, most = 0, distance = 0, local = 0;
      bool seen = false;
      for (Index j = 0; j <= i; ++j) {
        const bool copy =
            j < i && ids[static_cast<std::size_t>(j)] == ids[static_cast<std::size_t>(i)];
        if (copy) duplicate += a(j), follower += a(j + 1), seen = true;
        if (a(j) > 0) entropy -= a(j) * std::log(a(j));
        most = std::max(most, a(j));
        distance += a(j) * static_cast<double>(i - j);
        if (j > i - 5) local += a(j);
        if (i - j < std::ssize(offsets)) offsets[static_cast<std::size_t>(i - j)].add(a(j));
      }
      if (seen) means[Score::duplicate_token].add(duplicate);
      if (seen) means[Score::prefix_matching].add(follower);
      means[Score::entropy].add(entropy);
      means[Score::confidence].add(most);
      means[Score::mean_distance].add(distance);
      means[Score::locality].add(local);
    }
  }
  std::map<Score, double> scores;
  for (const auto& [score, mean] : means) scores[score] = mean.value();
  for (const Mean& offset : offsets)
    scores[Score::fixed_offset] = std::max(scores[Score::fixed_offset], offset.value());
  return scores;
}

/// Data without a pattern: random tokens.
Sequences random_sequences(Index count, Index time, Index vocab) {
  Sequences all{
      {test::random_ids({count, time}, vocab, 5), test::random_ids({count, time}, vocab, 6)},
      std::vector<Index>(static_cast<std::size_t>(count), time)};
  all.lengths[0] = time - 3;  // one of them ends sooner
  return all;
}

Sets known_sets() {
  const Sequences data = random_sequences(20, KnownHeads::kTime, KnownHeads::kVocab);
  return {.data = data,
          .repeated = repeated_sequences(data, 20, KnownHeads::kTime, std::nullopt, 3)};
}

}  // namespace

TEST_CASE("scores of known heads are what the definitions give", "[study]") {
  const KnownHeads known;
  const Sets sets = known_sets();
  for (const Sequences* sequences : {&sets.data, &*sets.repeated}) {
    const std::vector<Scores> scores = pattern_scores(known.model, *sequences);
    for (const HeadId id : heads_of(known.model.config)) {
      CAPTURE(name_of(id));
      const Scores& found =
          scores[static_cast<std::size_t>(id.layer * KnownHeads::kHeads + id.head)];
      const auto expected = by_hand(*sequences, [&](auto ids, Index i, Index j) {
        return KnownHeads::weight(id.layer, id.head, ids, i, j);
      });
      CHECK(found.size() == expected.size());
      for (const auto& [score, value] : expected) {
        CAPTURE(name_of(score));
        CHECK(found.at(score).value == Approx(value).margin(1e-6));
      }
    }
  }
}

TEST_CASE("chance is what even weights give", "[study]") {
  const KnownHeads known;
  const Sets sets = known_sets();
  for (const Sequences* sequences : {&sets.data, &*sets.repeated}) {
    const Scores even = pattern_scores(known.model, *sequences)[3];
    for (const auto& [score, measure] : even) {
      CAPTURE(name_of(score));
      CHECK(measure.value == Approx(measure.chance).margin(1e-9));
      if (measure.p) CHECK(*measure.p > 0.999);
    }
  }
}

TEST_CASE("known heads get their names, and even ones none", "[study]") {
  const KnownHeads known;
  const auto heads = study_heads(known.model, known_sets(), 1);
  std::vector<std::string> labels;
  for (const HeadStudy& head : heads) labels.push_back(head.label);
  CHECK(labels == std::vector<std::string>{"previous token", "first token", "current token", "", "",
                                           "induction", "copying", "", "", ""});
}
