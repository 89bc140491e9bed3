// A parser for the built-in stories, written from "The grammar of stories" in datasets/README.md
// and nothing else: it shares no word list and no code with what makes them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace headwise::test {

/// Two words that belong together, as byte offsets in the story.
struct StoryLink {
  std::size_t from, to;
};

/// What is right and wrong with one sentence, given what stands before it in its story.
struct Verdict {
  std::string_view text;  ///< with its full stop, when it has one
  std::string form;       ///< O1 ... E2; empty when the words have none

  bool grammatical = true;  ///< words, spelling, one of the forms
  bool kind = true;         ///< its adjectives and verbs may be said of people, where they are
  bool agreement = true;
  bool antecedent = true;
  bool sense = true;
  std::string fault;  ///< "grammar", "kind", "agreement", "antecedent" or "sense": the first met
  std::string why;    ///< what it is, in words
  std::string misplaced;  ///< why this form may not stand here in the story; says nothing of parses

  std::vector<StoryLink> verbs;     ///< verb to the subject it agrees with
  std::vector<StoryLink> pronouns;  ///< pronoun to the last mention of its antecedent
  std::vector<StoryLink> banks;     ///< `bank` to the last cue of its sense
  int readings = 0;                 ///< forms, or ways to have one, with nothing wrong

  [[nodiscard]] bool parses() const {
    return grammatical && kind && agreement && antecedent && sense;
  }
};

/// The sentences of one story, a line of text without its newline, in order.
std::vector<Verdict> check_story(std::string_view line);

}  // namespace headwise::test
