#include "headwise/study/copying.hpp"

#include <set>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/known_heads.hpp"
#include "support/models.hpp"

using namespace headwise;
using namespace headwise::study;
using test::KnownHeads;

namespace {

/// The copying score of a known head that writes the tokens it looks at as they are: a token's
/// logit is the weight on it, less 1/V, the mean over the vocabulary.
Measure by_hand(const Sequences& sequences, HeadId head) {
  Measure sum;
  double queries = 0;
  for (Index b = 0; b < sequences.count(); ++b) {
    const auto ids = sequences.ids(b);
    const std::set<Id> tokens(ids.begin(), ids.end());
    for (Index i = 0; i < std::ssize(ids); ++i) {
      std::map<Id, double> on;
      double most = 0, all = 0;
      Id attended = 0;
      for (Index j = 0; j <= i; ++j) {
        const double a = KnownHeads::weight(head.layer, head.head, ids, i, j);
        const Id token = ids[static_cast<std::size_t>(j)];
        on[token] += a;
        if (a > most) most = a, attended = token;
      }
      if (attended == ids[0]) continue;  // resting on the first token is no copying
      ++queries;
      const auto raised = [&](double a) { return std::max(0.0, a - 1.0 / KnownHeads::kVocab); };
      for (const auto& [token, a] : on) all += raised(a);
      sum.value += raised(on[attended]) / all;
      sum.chance += 1 / static_cast<double>(tokens.size());
    }
  }
  return {.value = sum.value / queries, .chance = sum.chance / queries};
}

void check(const KnownHeads& known, const Sequences& sequences, HeadId head) {
  CAPTURE(name_of(head));
  const auto found = copying_scores(
      known.model,
      sequences)[static_cast<std::size_t>(head.layer * KnownHeads::kHeads + head.head)];
  const Measure expected = by_hand(sequences, head);
  REQUIRE(found);
  CHECK(found->value == Approx(expected.value).margin(1e-6));
  CHECK(found->chance == Approx(expected.chance).margin(1e-9));
}

}  // namespace

TEST_CASE("copying scores of known heads are what the definition gives", "[study]") {
  const KnownHeads known;
  // (Not the induction head: where it finds nothing it looks evenly, and which token it then
  // attends to most is a matter of rounding.)
  Sequences data{{test::random_ids({20, KnownHeads::kTime}, 10, 5),
                  test::random_ids({20, KnownHeads::kTime}, 10, 6)},
                 std::vector<Index>(20, KnownHeads::kTime)};
  data.lengths[0] -= 3;
  check(known, data, {1, 1});
  const Sequences repeated = *repeated_sequences(data, 20, KnownHeads::kTime, Id{0}, 3);
  check(known, repeated, {1, 1});
}

TEST_CASE("a head that writes nothing has no copying score", "[study]") {
  const KnownHeads known;
  const Sequences data{{test::random_ids({2, KnownHeads::kTime}, 10, 5),
                        test::random_ids({2, KnownHeads::kTime}, 10, 6)},
                       std::vector<Index>(2, KnownHeads::kTime)};
  const auto scores = copying_scores(known.model, data);
  for (const Index head : {1, 2, 3, 4, 7, 8, 9}) CHECK(!scores[static_cast<std::size_t>(head)]);
}
