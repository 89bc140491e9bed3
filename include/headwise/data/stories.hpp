// Stories of the built-in grammar (datasets/README.md, "The grammar of stories"), in which the
// subject of every verb, the antecedent of every pronoun and the sense of every "bank" are known.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headwise/core/shape.hpp"

namespace headwise {

enum class Number { singular, plural };
enum class Gender { none, feminine, masculine, neuter };
enum class Sense { none, river, money };
std::span<const std::string_view> names_of(Number);
std::span<const std::string_view> names_of(Gender);
std::span<const std::string_view> names_of(Sense);

/// A word that means something to another one. A pair ("Ann and Ben") is one mention.
struct Mention {
  Index begin = 0, end = 0;  ///< bytes [begin, end) of the story's text
  Number number = Number::singular;
  Gender gender = Gender::none;  ///< of names, topics (neuter) and what stands for them
  Sense sense = Sense::none;     ///< of "bank" and its cues
};

/// A verb, its subject, and the nouns between the two, which it must not agree with.
struct Agreement {
  Mention verb, subject;
  std::vector<Mention> attractors;
};

/// A pronoun and the name or noun that it stands for, in the same sentence or the one before.
struct Reference {
  Mention pronoun, antecedent;
};

/// A "bank" and the word that decides its sense, in the same sentence or the one before.
struct Bank {
  Mention word, cue;
};

struct Story {
  std::string text;              ///< one line, without its end
  std::vector<Index> sentences;  ///< the byte at which each begins
  std::vector<Agreement> verbs;  ///< each list in the order of the text
  std::vector<Reference> pronouns;
  std::vector<Bank> banks;

  [[nodiscard]] std::string_view word(const Mention& m) const {
    return std::string_view(text).substr(static_cast<std::size_t>(m.begin),
                                         static_cast<std::size_t>(m.end - m.begin));
  }
};

/// The first stories of a seed that have `sentences` sentences or more between them. The same on
/// every platform; the first n do not depend on how many there are. Throws UsageError when
/// sentences < 1.
std::vector<Story> stories(Index sentences, std::uint64_t seed);

/// The text, a story a line.
std::string stories_text(const std::vector<Story>& stories);

/// A story and what is known about it, as one line of JSON without its end. A word is
/// {"at":[begin,end],"word":"boats","number":"plural"}, with "gender" and "sense" where it has one.
std::string annotation(const Story& story);

/// What the built-in corpus is made of.
inline constexpr Index kCorpusSentences = 20000;
inline constexpr std::uint64_t kCorpusSeed = 1;

}  // namespace headwise
