// Stories of the built-in grammar: the corpus comes out again, and what is said beside the text is
// so. (Whether the text is in the grammar is for its parser to say.)
#include "headwise/data/stories.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "headwise/core/file.hpp"
#include "headwise/core/parse.hpp"
#include "headwise/data/text.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace headwise;

namespace {

const std::vector<Story>& ten_thousand() {
  static const std::vector<Story> all = stories(10000, 7);
  return all;
}

/// From 0: the sentence that a word stands in.
std::ptrdiff_t sentence_of(const Story& story, const Mention& m) {
  const auto& starts = story.sentences;
  return std::upper_bound(starts.begin(), starts.end(), m.begin) - starts.begin() - 1;
}

std::vector<std::string> sentences_of(const Story& story) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < story.sentences.size(); ++i) {
    const bool last = i + 1 == story.sentences.size();
    const Index end = last ? static_cast<Index>(story.text.size()) : story.sentences[i + 1] - 1;
    all.emplace_back(story.word({.begin = story.sentences[i], .end = end}));
  }
  return all;
}

/// Every mention there is.
std::vector<Mention> mentions_of(const Story& story) {
  std::vector<Mention> all;
  for (const Agreement& a : story.verbs) {
    all.insert(all.end(), {a.verb, a.subject});
    all.insert(all.end(), a.attractors.begin(), a.attractors.end());
  }
  for (const Reference& r : story.pronouns) all.insert(all.end(), {r.pronoun, r.antecedent});
  for (const Bank& b : story.banks) all.insert(all.end(), {b.word, b.cue});
  return all;
}

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Whether a noun or name looks as it is said to be.
bool looks(std::string_view word, const Mention& m) {
  const bool plural = m.number == Number::plural;
  if (one_of(word, {"Ann", "Eve", "Lily", "Mia", "Rose", "Zoe"}))
    return !plural && m.gender == Gender::feminine;
  if (one_of(word, {"Ben", "Jack", "Leo", "Max", "Sam", "Tom"}))
    return !plural && m.gender == Gender::masculine;
  if (word.find(" and ") != std::string_view::npos) return plural && m.gender == Gender::none;
  return plural == word.ends_with('s') && one_of(name_of(m.gender), {"none", "neuter"});
}

bool looks_like_pronoun(std::string_view word, const Mention& m) {
  if (m.number == Number::plural) return one_of(word, {"they", "They", "them"});
  if (m.gender == Gender::feminine) return one_of(word, {"she", "She", "her"});
  if (m.gender == Gender::masculine) return one_of(word, {"he", "He", "him"});
  return m.gender == Gender::neuter && one_of(word, {"it", "It"});
}

/// A verb in the singular ends in s (is, has, runs), in the plural not.
bool looks_like_verb(std::string_view word, Number number) {
  return word.ends_with('s') == (number == Number::singular);
}

}  // namespace

TEST_CASE("the corpus comes out of its seed byte for byte", "[data][stories]") {
  const std::string text = stories_text(stories(kCorpusSentences, kCorpusSeed));
  CHECK(text == read_file(HEADWISE_GOLDEN "/../../datasets/stories.txt"));
  CHECK(text == builtin_text());
  CHECK(text.size() > 900'000);
  CHECK(text.size() < 1'100'000);
}

TEST_CASE("the first stories do not depend on how many are asked for", "[data][stories]") {
  const std::string many = stories_text(stories(500, 3));
  for (const Index n : {1, 4, 5, 6, 100, 499}) {
    const std::vector<Story> few = stories(n, 3);
    CHECK(many.starts_with(stories_text(few)));
    Index told = 0, last = 0;
    for (const Story& s : few) told += last = static_cast<Index>(s.sentences.size());
    CHECK(told >= n);
    CHECK(told - last < n);
  }
  CHECK(stories_text(stories(100, 3)) != stories_text(stories(100, 4)));
  CHECK_THROWS_WITH(stories(0, 1), "sentences: must be >= 1, got 0");
  CHECK_THROWS_AS(stories(-5, 1), UsageError);
}

TEST_CASE("a story is 3 to 5 sentences of at most 75 characters", "[data][stories]") {
  for (const Story& story : ten_thousand()) {
    INFO(story.text);
    REQUIRE(story.sentences.size() >= 3);
    REQUIRE(story.sentences.size() <= 5);
    std::string joined;
    for (const std::string& s : sentences_of(story)) {
      REQUIRE(s.size() <= 75);
      REQUIRE(s.find('.') == s.size() - 1);
      REQUIRE((s[0] >= 'A' && s[0] <= 'Z'));
      joined += (joined.empty() ? "" : " ") + s;
    }
    REQUIRE(joined == story.text);
  }
}

TEST_CASE("each mention is a whole word or a pair", "[data][stories]") {
  for (const Story& story : ten_thousand()) {
    INFO(story.text);
    const auto letter = [&](Index at) {
      const char c = at < 0 ? ' ' : story.text[static_cast<std::size_t>(at)];
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    for (const Mention& m : mentions_of(story)) {
      INFO(story.word(m));
      REQUIRE(m.begin < m.end);
      REQUIRE(!letter(m.begin - 1));
      REQUIRE(!letter(m.end));
      for (Index at = m.begin; at < m.end; ++at)
        REQUIRE((letter(at) || story.word(m).find(" and ") != std::string_view::npos));
    }
  }
}

TEST_CASE("verbs agree with their subjects, whatever stands between", "[data][stories]") {
  for (const Story& story : ten_thousand()) {
    INFO(story.text);
    for (const auto& [verb, subject, attractors] : story.verbs) {
      INFO(story.word(verb));
      REQUIRE(verb.number == subject.number);
      REQUIRE(looks_like_verb(story.word(verb), verb.number));
      REQUIRE((looks(story.word(subject), subject) ||
               looks_like_pronoun(story.word(subject), subject)));
      REQUIRE(subject.end < verb.begin);
      REQUIRE(sentence_of(story, subject) == sentence_of(story, verb));
      Index from = subject.end;
      for (const Mention& a : attractors) {
        REQUIRE(looks(story.word(a), a));
        REQUIRE(a.begin > from);
        from = a.end;
      }
      REQUIRE(from < verb.begin);
    }
  }
}

TEST_CASE("pronouns fit their antecedents, at most a sentence back", "[data][stories]") {
  Index near = 0, all = 0;
  for (const Story& story : ten_thousand()) {
    INFO(story.text);
    for (const auto& [pronoun, antecedent] : story.pronouns) {
      INFO(story.word(pronoun));
      REQUIRE(looks_like_pronoun(story.word(pronoun), pronoun));
      REQUIRE(looks(story.word(antecedent), antecedent));
      REQUIRE(pronoun.number == antecedent.number);
      REQUIRE(pronoun.gender == antecedent.gender);
      REQUIRE(antecedent.end < pronoun.begin);
      const auto back = sentence_of(story, pronoun) - sentence_of(story, antecedent);
      REQUIRE((back == 0 || back == 1));
      ++all;
      near += pronoun.begin - antecedent.begin <= 100;
    }
  }
  CHECK(all > 5000);
  CHECK(near * 100 >= all * 97);  // what decides is in reach of a short context
}

TEST_CASE("a bank has the sense of its cue, and the senses are even", "[data][stories]") {
  Index river = 0, all = 0;
  for (const Story& story : ten_thousand()) {
    INFO(story.text);
    for (const auto& [word, cue] : story.banks) {
      REQUIRE(story.word(word) == "bank");
      REQUIRE(word.sense == cue.sense);
      const bool is_river = one_of(story.word(cue), {"river", "stream", "water"});
      REQUIRE((is_river || one_of(story.word(cue), {"money", "coins", "gold"})));
      REQUIRE((cue.sense == Sense::river) == is_river);
      REQUIRE(cue.end < word.begin);
      REQUIRE(sentence_of(story, word) - sentence_of(story, cue) <= 1);
      river += is_river;
      ++all;
    }
  }
  CHECK(all > 2000);
  CHECK(river * 100 >= all * 45);
  CHECK(river * 100 <= all * 55);
}

TEST_CASE("all verbs, pronouns and banks of the text are there", "[data][stories]") {
  for (const Story& story : ten_thousand()) {
    INFO(story.text);
    std::set<Index> known;
    for (const Agreement& a : story.verbs) known.insert(a.verb.begin);
    for (const Reference& r : story.pronouns) known.insert(r.pronoun.begin);
    for (const Bank& b : story.banks) known.insert(b.word.begin);
    REQUIRE(known.size() == story.verbs.size() + story.pronouns.size() + story.banks.size());
    for (std::size_t at = 0, end = 0; at < story.text.size(); at = end + 1) {
      end = std::min(story.text.find_first_of(" .,", at), story.text.size());
      const std::string_view word = std::string_view(story.text).substr(at, end - at);
      if (one_of(word,
                 {"is",  "are", "has", "have", "bank", "he",   "He",   "him", "she",     "She",
                  "her", "it",  "It",  "they", "They", "them", "sees", "see", "watches", "watch"}))
        REQUIRE(known.contains(static_cast<Index>(at)));
    }
  }
}

TEST_CASE("attractors of the other number are common; sentences seldom come twice",
          "[data][stories]") {
  Index between = 0, other = 0, count = 0;
  std::set<std::string> distinct;
  for (const Story& story : ten_thousand()) {
    for (const auto& [verb, subject, attractors] : story.verbs) {
      between += !attractors.empty();
      other += std::any_of(attractors.begin(), attractors.end(),
                           [number = verb.number](auto& a) { return a.number != number; });
    }
    for (std::string& s : sentences_of(story)) {
      distinct.insert(std::move(s));
      ++count;
    }
  }
  CHECK(between > 5000);
  CHECK(other * 100 >= between * 40);
  CHECK(other * 100 <= between * 60);
  CHECK(static_cast<Index>(distinct.size()) * 100 >= count * 95);
}

TEST_CASE("an annotation is the story as JSON", "[data][stories]") {
  for (const Story& story : stories(200, 5)) {
    const auto json = nlohmann::json::parse(annotation(story));
    const auto same = [&](const nlohmann::json& word, const Mention& m) {
      CHECK(word["at"] == nlohmann::json{m.begin, m.end});
      CHECK(word["word"] == story.word(m));
      CHECK(word["number"] == name_of(m.number));
      CHECK(word.value("gender", "none") == name_of(m.gender));
      CHECK(word.value("sense", "none") == name_of(m.sense));
    };
    CHECK(json["text"] == story.text);
    CHECK(json["sentences"] == story.sentences);
    REQUIRE(json["verbs"].size() == story.verbs.size());
    for (std::size_t i = 0; i < story.verbs.size(); ++i) {
      same(json["verbs"][i]["verb"], story.verbs[i].verb);
      same(json["verbs"][i]["subject"], story.verbs[i].subject);
      const auto& attractors = json["verbs"][i]["attractors"];
      REQUIRE(attractors.size() == story.verbs[i].attractors.size());
      for (std::size_t j = 0; j < attractors.size(); ++j)
        same(attractors[j], story.verbs[i].attractors[j]);
    }
    REQUIRE(json["pronouns"].size() == story.pronouns.size());
    for (std::size_t i = 0; i < story.pronouns.size(); ++i) {
      same(json["pronouns"][i]["pronoun"], story.pronouns[i].pronoun);
      same(json["pronouns"][i]["antecedent"], story.pronouns[i].antecedent);
    }
    REQUIRE(json["banks"].size() == story.banks.size());
    for (std::size_t i = 0; i < story.banks.size(); ++i) {
      same(json["banks"][i]["bank"], story.banks[i].word);
      same(json["banks"][i]["cue"], story.banks[i].cue);
    }
  }
}
