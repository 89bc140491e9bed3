// What `data stories --json` knows about its words is what a parser of the grammar finds in the
// bare text: who the subject of each verb is, what each pronoun stands for, which cue a bank has.
#include <algorithm>

#include "cli/program.hpp"
#include "support/catch.hpp"
#include "support/story_checker.hpp"

using namespace headwise::test;
using nlohmann::json;
using StoryVerdict = headwise::test::Verdict;

namespace {

using Links = std::vector<std::pair<std::size_t, std::size_t>>;

Links written(const json& story, const char* list, const char* from, const char* to) {
  Links links;
  for (const json& link : story[list])
    links.emplace_back(link[from]["at"][0].get<std::size_t>(),
                       link[to]["at"][0].get<std::size_t>());
  std::ranges::sort(links);
  return links;
}

Links links_of(const std::vector<StoryVerdict>& story, std::vector<StoryLink> StoryVerdict::*list) {
  Links links;
  for (const StoryVerdict& sentence : story)
    for (const StoryLink& link : sentence.*list) links.emplace_back(link.from, link.to);
  std::ranges::sort(links);
  return links;
}

}  // namespace

TEST_CASE("subjects, antecedents and cues are those of the text", "[cli][stories]") {
  const Result made = headwise_program("data stories --sentences 4000 --seed 2 --json");
  REQUIRE(made.code == 0);
  std::size_t links = 0;
  for (const json& story : lines(made.out)) {
    const std::string text = story["text"];
    const std::vector<StoryVerdict> read = check_story(text);
    INFO(text);
    CHECK(std::ranges::all_of(
        read, [](const StoryVerdict& v) { return v.parses() && v.misplaced.empty(); }));
    CHECK(written(story, "verbs", "verb", "subject") == links_of(read, &StoryVerdict::verbs));
    CHECK(written(story, "pronouns", "pronoun", "antecedent") ==
          links_of(read, &StoryVerdict::pronouns));
    CHECK(written(story, "banks", "bank", "cue") == links_of(read, &StoryVerdict::banks));
    links += story["verbs"].size() + story["pronouns"].size() + story["banks"].size();
  }
  CHECK(links > 10000);
}
