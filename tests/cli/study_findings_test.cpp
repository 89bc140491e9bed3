#include "cli/study_findings.hpp"

#include "support/catch.hpp"

using namespace headwise;
using namespace headwise::cli;
using study::HeadId, study::HeadSet, study::HeadStudy, study::Score;

namespace {

HeadStudy named(HeadId id, std::optional<Score> role) {
  HeadStudy head{.id = id};
  head.role = role;
  if (role) head.label = study::label_of(*role);
  return head;
}

/// Three heads in the first layer, two of them previous_token; one of induction in the second.
std::vector<HeadStudy> heads(std::optional<Score> last = Score::prefix_matching) {
  return {named({0, 0}, Score::previous_token), named({0, 1}, Score::previous_token),
          named({0, 2}, std::nullopt), named({1, 0}, last), named({1, 1}, std::nullopt)};
}

/// K-compositions; the baseline of width 16 is 0.25.
std::vector<study::Composition> pairs(double k_00, double k_01) {
  return {{{0, 0}, {1, 0}, 0.9, k_00, 0.9}, {{0, 0}, {1, 1}, 0.9, 0.9, 0.9},
          {{0, 1}, {1, 0}, 0.9, k_01, 0.9}, {{0, 1}, {1, 1}, 0.9, 0.9, 0.9},
          {{0, 2}, {1, 0}, 0.9, 0.9, 0.9},  {{0, 2}, {1, 1}, 0.9, 0.9, 0.9}};
}

}  // namespace

TEST_CASE("what feeds induction is a group, and so is all that has no part in it", "[cli][study]") {
  const std::vector<GroupFinding> groups = group_heads(heads(), pairs(0.24, 0.26), 16);
  REQUIRE(groups.size() == 5);
  CHECK(groups[0].group.heads == HeadSet{{0, 0}, {0, 1}});
  CHECK(groups[1].role == Score::prefix_matching);
  CHECK(groups[2].label == "no role");
  CHECK(groups[2].group.heads == HeadSet{{0, 2}, {1, 1}});
  CHECK(groups[2].alike);
  CHECK(groups[3].label == "previous tokens that feed the keys of induction");
  CHECK(groups[3].group.heads == HeadSet{{0, 1}});
  CHECK(groups[4].label == "all but induction and what feeds its keys");
  CHECK(groups[4].group.heads == HeadSet{{0, 0}, {0, 2}, {1, 1}});
  for (const std::size_t i : {3U, 4U}) {
    CHECK(!groups[i].role);
    CHECK(!groups[i].alike);
  }
  // Where nothing feeds it, there is no such group; without induction neither.
  const auto unfed = group_heads(heads(), pairs(0.1, 0.25), 16);
  REQUIRE(unfed.size() == 4);
  CHECK(unfed[3].group.heads == HeadSet{{0, 0}, {0, 1}, {0, 2}, {1, 1}});
  CHECK(group_heads(heads(std::nullopt), pairs(0.9, 0.9), 16).size() == 2);
}
