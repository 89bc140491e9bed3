// headwise data: the corpus as text, as JSON lines, in files, and for the eye.
#include <algorithm>
#include <sstream>

#include "cli/program.hpp"
#include "headwise/data/stories.hpp"
#include "headwise/data/task.hpp"
#include "support/catch.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

std::string annotations(const std::vector<Story>& all) {
  std::string text;
  for (const Story& story : all) text += annotation(story) + "\n";
  return text;
}

}  // namespace

TEST_CASE("data writes the stories of a seed", "[cli][data]") {
  const Result text = headwise_program("data stories --sentences 50 --seed 9");
  CHECK(text.code == 0);
  CHECK(text.out == stories_text(stories(50, 9)));
  CHECK(text.err.empty());
  const Result as_json = headwise_program("data stories --sentences 50 --seed 9 --json");
  CHECK(as_json.code == 0);
  CHECK(as_json.out == annotations(stories(50, 9)));
  CHECK(headwise_program("data stories").out == stories_text(stories(kCorpusSentences, 1)));
}

TEST_CASE("data --out writes text and annotations, and never over a file", "[cli][data]") {
  const Folder folder;
  const std::string out = folder / "s.txt", known = out + ".jsonl";
  const std::string command = "data stories --sentences 50 --out " + out;
  const Result r = headwise_program(command);
  CHECK(r.code == 0);
  CHECK(r.out.empty());
  CHECK(contents(out) == stories_text(stories(50, 1)));
  CHECK(contents(known) == annotations(stories(50, 1)));

  for (const std::string& keep : {out, known}) {
    const Folder other;
    const std::string path = other / "s.txt", there = keep == out ? path : path + ".jsonl";
    (void)other.file(keep == out ? "s.txt" : "s.txt.jsonl", "mine");
    const Result refused = headwise_program("data stories --sentences 50 --out " + path);
    CHECK(refused.code == 2);
    CHECK(refused.err ==
          "headwise: --out: " + there +
              " is there already; choose another file, or replace it with --force\n");
    CHECK(contents(there) == "mine");
    const std::string& second = keep == out ? path + ".jsonl" : path;
    CHECK_FALSE(std::filesystem::exists(second));
  }
}

TEST_CASE("data --show says what it knows under each sentence", "[cli][data]") {
  const Result r = headwise_program("data stories --sentences 50 --show 3");
  CHECK(r.code == 0);
  const std::vector<Story> all = stories(50, 1);
  std::size_t from = 0;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t s = 0; s < all[i].sentences.size(); ++s) {
      const bool last = s + 1 == all[i].sentences.size();
      const Index end = last ? static_cast<Index>(all[i].text.size()) : all[i].sentences[s + 1] - 1;
      const std::string sentence(all[i].word({.begin = all[i].sentences[s], .end = end}));
      const std::size_t at = r.out.find(sentence + "\n", from);
      REQUIRE(at != std::string::npos);
      from = at + sentence.size();
    }
  CHECK(std::count(r.out.begin(), r.out.end(), '\n') > 20);
  CHECK(r.out.starts_with(
      "Zoe goes to the rock and likes a blue bird.\n"
      "    verb 'goes' singular <- subject 'Zoe' singular feminine\n"
      "    verb 'likes' singular <- subject 'Zoe' singular feminine; attractors: 'rock' singular\n"
      "It is blue, so Zoe sees it.\n"));
  CHECK_THAT(r.out, Catch::Contains("\n    pronoun 'It' singular neuter <- antecedent 'bird' "
                                    "singular neuter\n"));
  CHECK_THAT(r.out, Catch::Contains("\n    'bank' singular money <- cue 'money'\n"));
}

TEST_CASE("data writes a task's sequences, which train from a file as well", "[cli][data][task]") {
  const Result r = headwise_program("data copy --length 4 --sentences 30");
  REQUIRE(r.code == 0);
  std::istringstream in(r.out);
  int count = 0;
  for (std::string line; std::getline(in, line); ++count) {
    REQUIRE(line.size() == 9);
    CHECK(line.substr(0, 4) + "\t" + line.substr(0, 4) == line);
  }
  CHECK(count == 30);
  const Result shown = headwise_program("data copy --length 4 --show 1");
  CHECK(shown.out == r.out.substr(0, 4) + "␉" + r.out.substr(5, 4) + "␤\n     ^^^^^\n");
  const auto known = lines(headwise_program("data induction --sentences 2 --json").out);
  REQUIRE(known.size() == 2);
  CHECK(known[0]["text"].get<std::string>().size() == known[0]["counted"].size());
  const Folder folder;
  const std::string file = folder / "copy.tsv";
  REQUIRE(headwise_program("data copy --length 4 --sentences 30 --out " + file).code == 0);
  CHECK(contents(file) == r.out);
  const auto again = make_task(file);
  CHECK(!again->shared());  // each line is of the part that it was drawn from
  CHECK(again->valid_size() == 3);
  CHECK(again->train_size() == 27);
  CHECK(headwise_program("train --steps 1 --threads 1 --layers 1 --eval-batches 1 --task " + file +
                         " --out " + (folder / "run"))
            .code == 0);
}

TEST_CASE("data refuses what it cannot do", "[cli][data][errors]") {
  const std::pair<const char*, const char*> wrong[] = {
      {"data stories --sentences 0", "headwise: --sentences: must be >= 1, got 0\n"},
      {"data stories --sentences -5", "headwise: --sentences: must be >= 1, got -5\n"},
      {"data stories --sentences abc",
       "headwise: --sentences: expected a whole number, got 'abc'\n"},
      {"data stories --show -1", "headwise: --show: must be >= 0, got -1\n"},
      {"data stories --show 1 --json", "headwise: --show: is for people, without --json\n"},
      {"data fables", "headwise: data: expected stories or copy or induction, got 'fables'\n"},
      {"data stories --length 3", "headwise: --length: 3 is for tasks, not for stories\n"},
      {"data copy --length -3", "headwise: --length: must be in [1, 65536], got -3\n"},
      {"data stories --out /nowhere/s.txt", "headwise: /nowhere/s.txt"}};
  for (const auto& [arguments, message] : wrong) {
    INFO(arguments);
    const Result r = headwise_program(arguments);
    CHECK(r.code == (std::string(arguments).find("nowhere") == std::string::npos ? 2 : 1));
    CHECK(r.out.empty());
    CHECK_THAT(r.err, Catch::Contains(message));
  }
  CHECK(headwise_program("data").code == 2);
}
