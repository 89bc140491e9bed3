#include "support/story_checker.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <sstream>
#include <utility>

namespace headwise::test {
namespace {

using Strings = std::vector<std::string>;

Strings split(const std::string& text, char at) {
  Strings parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) {
    const std::size_t first = part.find_first_not_of(' ');
    if (first != std::string::npos)
      parts.push_back(part.substr(first, part.find_last_not_of(' ') + 1 - first));
  }
  return parts;
}

bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

// ---- The document's tables -------------------------------------------------------------------

enum class Number { none, singular, plural };

/// Words of a class: "dogs", "a little", "walks along the river".
struct Phrase {
  Strings words;
  Number number = Number::none;
};

const std::map<std::string, std::string> kPlain = {
    {"GIRL", "Ann, Eve, Mia, Zoe"},
    {"BOY", "Ben, Leo, Sam, Tom"},
    {"PREP", "behind, by, near"},
    {"NUMBER", "many, three, two"},
    {"LOOK", "big, blue, grey, red, small, white"},
    {"FEEL", "calm, glad, happy, hungry, sad, tired"},
    {"STATE", "clean, dirty, heavy, lost, new, old"},
    {"HOW", "again, for hours, now, there"},
    {"river", "green, muddy, steep, wet"},
    {"money", "busy, closed, open, safe"},
};
const std::map<std::string, std::string> kNouns = {
    {"TOPIC",
     "bird, cat, cow, dog, duck, frog, hen, pig,"
     "ball, boat, book, cart, cup, drum, kite, toy"},
    {"PLACE", "barn, gate, hill, house, pond, rock, tree, wall"},
};
const std::map<std::string, std::string> kVerbs = {
    {"BE", "is/are"},
    {"HAVE", "has/have"},
    {"LIVE", "eats/eat, jumps/jump, plays/play, sings/sing, sleeps/sleep, waits/wait"},
    {"STIR", "falls/fall, moves/move, shakes/shake, turns/turn"},
    {"TAKE", "draws/draw, finds/find, likes/like, sees/see, wants/want, watches/watch"},
    {"MEET", "follows/follow, likes/like, sees/see"},
    {"GO", "comes/come, goes/go, runs/run, walks/walk"},
    {"VISIT", "comes/come to, goes/go to, walks/walk to, sits/sit by, waits/wait at"},
    {"RIVER",
     "swims/swim in the river, walks/walk along the river, jumps/jump over the stream,"
     "plays/play in the water"},
    {"MONEY",
     "counts/count the money, has/have a lot of money, finds/find some coins,"
     "has/have a bag of gold"},
};
const std::map<std::string, std::string> kCueSense = {
    {"river", "river"}, {"stream", "river"}, {"water", "river"},
    {"money", "money"}, {"coins", "money"},  {"gold", "money"},
};

// Small letters stand for themselves, capitals for a class, a rule, or a part with a condition
// (Sentence::step). TOPIC as a subject is SUBJECT; IT is IT as a subject, THEM as an object.
const std::map<std::string, std::string> kRules = {
    {"PP", "PREP the PLACE"},
    {"PPB", "PREP the PLACE / PREP BANK"},
    {"SAY", "BE ADJ / ACT HOW"},
    {"NEW", "a LOOK ONE / NUMBER LOOK MANY"},
    {"OBJ", "the TOPIC / THEM"},
    {"CUE", "RIVER / MONEY"},
    {"DO", "SAY / GO to the PLACE"},
    {"WHOM", "SOMEONE / HIM"},
    {"WAY", "past the PLACE / with OBJ / past the PLACE with OBJ"},
};

enum Where { first = 1, between = 2, last = 4 };
struct Form {
  std::string name;
  int where;
  std::string parts;
};
const std::vector<Form> kForms = {
    {"O1", first, "WHO GO to the PLACE and TAKE NEW"},
    {"O2", first, "NAME HAVE NEW and OTHER TAKE THEM"},
    {"C", first | between, "WHO CUE [PP] and VISIT BANK"},
    {"I", between, "WHO TAKE NEW [PPB]"},
    {"M1", between, "the SUBJECT [PPB] BE ADJ and ADJ"},
    {"M2", between, "the SUBJECT [PPB] ACT HOW and BE ADJ"},
    {"M3", between, "the SUBJECT [PPB] BE ADJ because|but IT SAY"},
    {"M4", between, "IT SAY , so WHO TAKE THEM"},
    {"M5", between, "WHO TAKE the TOPIC [PPB] because|but IT SAY"},
    {"M6", between, "WHO TAKE the TOPIC [PPB] and BE ADJ"},
    {"M7", between, "the SUBJECT [PPB] MEET WHOM and BE ADJ"},
    {"K", between, "BANK [PP] BE TRAIT , so WHO DO"},
    {"E1", last, "WHO BE ADJ and GO home WAY"},
    {"E2", last, "at night the SUBJECT [PPB] ACT and WHO ACT HOW"},
};

/// The tables above, ready to be looked up.
struct Lexicon {
  std::map<std::string, std::vector<Phrase>> classes;
  std::set<std::string> known;  // every word there is
  std::map<std::string, Number> topics;

  Lexicon() {
    for (const auto& [name, list] : kPlain)
      for (const std::string& words : split(list, ',')) add(name, words, Number::none);
    for (const auto& [name, list] : kNouns)
      for (const std::string& noun : split(list, ',')) {
        add(name, noun, Number::singular);
        add(name, noun + "s", Number::plural);
        if (name == "PLACE") continue;
        topics[noun] = Number::singular;
        topics[noun + "s"] = Number::plural;
      }
    for (const auto& [name, list] : kVerbs)
      for (const std::string& verb : split(list, ',')) {
        const std::size_t slash = verb.find('/'), end = std::min(verb.find(' '), verb.size());
        add(name, verb.substr(0, slash) + verb.substr(end), Number::singular);
        add(name, verb.substr(slash + 1), Number::plural);
      }
    for (const Form& form : kForms) learn(form.parts);
    for (const auto& [name, parts] : kRules) learn(parts);
    learn("the bank he she it they him her them ,");
  }

  [[nodiscard]] bool has(const std::string& name, const std::string& word) const {
    const auto& phrases = classes.at(name);
    return std::any_of(phrases.begin(), phrases.end(),
                       [&](const Phrase& p) { return p.words.front() == word; });
  }
  [[nodiscard]] bool is_name(const std::string& word) const {
    return has("GIRL", word) || has("BOY", word);
  }

 private:
  void add(const std::string& name, const std::string& words, Number number) {
    classes[name].push_back({split(words, ' '), number});
    for (const std::string& word : classes[name].back().words) known.insert(word);
  }
  void learn(const std::string& parts) {
    for (const std::string& part : split(parts, ' '))
      for (const std::string& word : split(part, '|'))
        if (!is_capital(word.front())) known.insert(word);
  }
};

const Lexicon& lexicon() {
  static const Lexicon made;
  return made;
}

// ---- Words, and whom they mention --------------------------------------------------------------

struct Word {
  std::string text;  // a sentence's first word in small letters, unless it is a name
  std::size_t at;    // byte offset in the story
};
using Words = std::vector<Word>;

/// The words of a sentence that begins at byte `at`, commas apart; what is wrong with its spelling
/// goes to `why`.
Words words_of(std::string_view sentence, std::size_t at, std::string& why) {
  Words words;
  if (!sentence.empty() && sentence.back() == '.')
    sentence.remove_suffix(1);
  else
    why = "it does not end with a full stop";
  for (std::size_t from = 0; from <= sentence.size();) {
    const std::size_t to = std::min(sentence.find(' ', from), sentence.size());
    std::string text(sentence.substr(from, to - from));
    const bool comma = !text.empty() && text.back() == ',';
    if (comma) text.pop_back();
    if (text.empty()) why = "words are not one space apart";
    words.push_back({text, at + from});
    if (comma) words.push_back({",", at + to - 1});
    from = to + 1;
  }
  std::string& head = words.front().text;
  if (!head.empty() && !is_capital(head.front()))
    why = "'" + head + "' begins it without a capital letter";
  if (!head.empty() && !lexicon().is_name(head))
    head.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(head.front())));
  return words;
}

/// A name, pair or topic: what pronouns may stand for.
struct Candidate {
  std::string pronouns;  // those that fit it
  std::string label;     // the same label: counts once
  bool person;           // a name or pair; a topic otherwise
  std::size_t at;
};

/// Those in words [0, end), the last mention of each.
void find_candidates(const Words& words, std::size_t end, std::map<std::string, Candidate>& out) {
  const Lexicon& lex = lexicon();
  const auto put = [&](Candidate c) { out.insert_or_assign(c.label, c); };
  for (std::size_t i = 0; i < end; ++i) {
    const std::string& word = words[i].text;
    if (lex.has("GIRL", word)) put({" she her ", word, true, words[i].at});
    if (lex.has("BOY", word)) put({" he him ", word, true, words[i].at});
    if (const auto topic = lex.topics.find(word); topic != lex.topics.end()) {
      put({topic->second == Number::plural ? " they them " : " it ", word, false, words[i].at});
    }
    if (i + 2 < end && words[i + 1].text == "and" && lex.is_name(word)) {
      std::string one = word, two = words[i + 2].text;
      if (!lex.is_name(two) || lex.has("GIRL", one) == lex.has("GIRL", two)) continue;
      if (lex.has("BOY", one)) std::swap(one, two);
      put({" they them ", one + " and " + two, true, words[i].at});
    }
  }
}

struct Cue {
  std::string sense;
  std::size_t at;
};
void find_cues(const Words& words, std::size_t end, std::vector<Cue>& out) {
  for (std::size_t i = 0; i < end; ++i)
    if (const auto cue = kCueSense.find(words[i].text); cue != kCueSense.end())
      out.push_back({cue->second, words[i].at});
}

// ---- One sentence ----------------------------------------------------------------------------

/// One way to read the words before `at`.
struct Reading {
  std::size_t at = 0;
  Verdict verdict;
  int faults = 0;

  std::string subject;
  bool person = false;  // the subject is a name or pair, or stands for one
  std::size_t subject_at = 0;
  Number number = Number::none;
  std::string sense;  // of the last `bank`

  void wrong(bool Verdict::*what, const std::string& why) {
    verdict.*what = false;
    if (faults++ > 0) return;
    verdict.why = why;
    verdict.fault = what == &Verdict::agreement    ? "agreement"
                    : what == &Verdict::antecedent ? "antecedent"
                    : what == &Verdict::sense      ? "sense"
                                                   : "kind";
  }
};
using Readings = std::vector<Reading>;

class Sentence {
 public:
  Sentence(const Words& words, const Words& before, std::string story_sense)
      : words_(words), before_(before), story_sense_(std::move(story_sense)) {}

  /// Every reading of the whole sentence as this form.
  Readings read(const Form& form) {
    Readings whole;
    for (Reading& r : run(form.parts, {Reading{}})) {
      if (r.at != words_.size()) continue;
      r.verdict.form = form.name;
      whole.push_back(std::move(r));
    }
    return whole;
  }
  /// Why no form has these words.
  [[nodiscard]] std::string no_form() const {
    for (const Word& word : words_)
      if (!lexicon().known.contains(word.text))
        return "'" + word.text + "' is no word of the grammar";
    std::string begun;
    for (std::size_t i = 0; i < furthest_; ++i) begun += (i > 0 ? " " : "") + words_[i].text;
    return furthest_ == words_.size()
               ? "no form ends with '" + begun + "'"
               : "no form goes on with '" + words_[furthest_].text + "' after '" + begun + "'";
  }

 private:
  Readings run(const std::string& parts, Readings readings) {
    for (const std::string& part : split(parts, ' ')) {
      Readings next;
      for (const Reading& r : readings) step(part, r, next);
      readings = std::move(next);
      for (const Reading& r : readings) furthest_ = std::max(furthest_, r.at);
    }
    return readings;
  }

  void step(const std::string& part, const Reading& r, Readings& out) {
    if (part.front() == '[') {
      out.push_back(r);
      step(part.substr(1, part.size() - 2), r, out);
    } else if (part.find('|') != std::string::npos) {
      for (const std::string& choice : split(part, '|')) step(choice, r, out);
    } else if (const auto rule = kRules.find(part); rule != kRules.end()) {
      for (const std::string& choice : split(rule->second, '/'))
        for (Reading& done : run(choice, {r})) out.push_back(std::move(done));
    } else if (kVerbs.contains(part)) {
      verb(part, r, out);
    } else if (lexicon().classes.contains(part)) {
      for (const Phrase& phrase : lexicon().classes.at(part)) take(phrase.words, r, out);
    } else if (!is_capital(part.front())) {
      take({part}, r, out);
    } else {
      conditioned(part, r, out);
    }
  }

  /// The reading that goes on with these words, if they are there.
  bool take(const Strings& expected, const Reading& r, Readings& out) const {
    if (r.at + expected.size() > words_.size()) return false;
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (words_[r.at + i].text != expected[i]) return false;
    out.push_back(r);
    out.back().at += expected.size();
    return true;
  }

  void verb(const std::string& name, const Reading& r, Readings& out) const {
    for (const Phrase& phrase : lexicon().classes.at(name)) {
      if (!take(phrase.words, r, out)) continue;
      Reading& now = out.back();
      now.verdict.verbs.push_back({words_[r.at].at, r.subject_at});
      if (phrase.number != r.number)
        now.wrong(&Verdict::agreement,
                  "'" + phrase.words.front() + "' does not agree with '" + r.subject + "'");
      const std::string sense = name == "RIVER" ? "river" : name == "MONEY" ? "money" : "";
      if (!sense.empty() && !story_sense_.empty() && sense != story_sense_)
        now.wrong(&Verdict::sense, "a " + sense + " cue in a story of " + story_sense_ + " cues");
    }
  }

  /// The parts that are more than words in a row.
  void conditioned(const std::string& part, const Reading& r, Readings& out) const {
    if (part == "ONE" || part == "MANY" || part == "SUBJECT") return topic(part, r, out);
    if (part == "NAME" || part == "OTHER") return name(part == "OTHER", r, out);
    if (part == "WHO") return who(r, out);
    if (part == "SOMEONE") return someone(r, out);
    if (part == "IT") return pronoun({"he", "she", "it", "they"}, false, true, r, out);
    if (part == "THEM") return pronoun({"him", "her", "it", "them"}, false, false, r, out);
    if (part == "HIM") return pronoun({"him", "her", "it", "them"}, true, false, r, out);
    if (part == "ADJ") return adjective(r, out);
    if (part == "ACT") return act(r, out);
    if (part == "BANK" && take({"the", "bank"}, r, out)) return bank(out.back());
    if (part == "TRAIT") return trait(r, out);
  }

  [[nodiscard]] std::string word_at(std::size_t i) const {
    return i < words_.size() ? words_[i].text : "";
  }

  /// A topic in the singular, in the plural, or as subject.
  void topic(const std::string& part, const Reading& r, Readings& out) const {
    for (const Phrase& noun : lexicon().classes.at("TOPIC")) {
      if (part == (noun.number == Number::plural ? "ONE" : "MANY")) continue;
      if (!take(noun.words, r, out)) continue;
      if (part == "SUBJECT") subject(out.back(), r.at, noun.number, false);
    }
  }

  /// A name as subject; `other`: a boy when the sentence begins with a girl, or the reverse.
  void name(bool other, const Reading& r, Readings& out) const {
    const Lexicon& lex = lexicon();
    const std::string word = word_at(r.at);
    if (!lex.is_name(word)) return;
    if (other && lex.has("GIRL", word) == lex.has("GIRL", word_at(0))) return;
    take({word}, r, out);
    subject(out.back(), r.at, Number::singular, true);
  }

  /// A name, a pair.
  void someone(const Reading& r, Readings& out) const {
    const Lexicon& lex = lexicon();
    const std::string one = word_at(r.at), two = word_at(r.at + 2);
    if (!lex.is_name(one)) return;
    take({one}, r, out);
    if (lex.is_name(two) && lex.has("GIRL", one) != lex.has("GIRL", two))
      take({one, "and", two}, r, out);
  }

  void who(const Reading& r, Readings& out) const {
    Readings named;
    someone(r, named);
    for (Reading& n : named) {
      subject(n, r.at, n.at > r.at + 1 ? Number::plural : Number::singular, true);
      out.push_back(std::move(n));
    }
    pronoun({"he", "she", "it", "they"}, true, true, r, out);
  }

  void adjective(const Reading& r, Readings& out) const {
    const Lexicon& lex = lexicon();
    const std::string word = word_at(r.at);
    if (!lex.has("LOOK", word) && !lex.has("FEEL", word) && !lex.has("STATE", word)) return;
    take({word}, r, out);
    if (r.person && !lex.has("FEEL", word)) unsuitable(out.back(), word);
  }

  void act(const Reading& r, Readings& out) const {
    verb("LIVE", r, out);
    Readings stirs;
    verb("STIR", r, stirs);
    for (Reading& s : stirs) {
      if (r.person) unsuitable(s, word_at(r.at));
      out.push_back(std::move(s));
    }
  }

  /// What is said of the bank.
  void trait(const Reading& r, Readings& out) const {
    const std::string word = word_at(r.at);
    for (const std::string sense : {"river", "money"}) {
      if (!lexicon().has(sense, word)) continue;
      take({word}, r, out);
      if (!r.sense.empty() && r.sense != sense)
        out.back().wrong(&Verdict::sense, "'" + word + "' of a bank of the " + r.sense + " sense");
    }
  }

  void subject(Reading& r, std::size_t first_word, Number number, bool person) const {
    r.subject_at = words_[first_word].at;
    r.subject.clear();
    for (std::size_t i = first_word; i < r.at; ++i)
      r.subject += (i > first_word ? " " : "") + words_[i].text;
    r.number = number;
    r.person = person;
  }

  static void unsuitable(Reading& r, const std::string& word) {
    r.wrong(&Verdict::kind, "'" + word + "' is not said of '" + r.subject + "'");
  }

  /// One of these pronouns: right if it has exactly one candidate, a name or pair where the form
  /// asks for `who`, a topic otherwise.
  void pronoun(const Strings& choices, bool who, bool as_subject, const Reading& r,
               Readings& out) const {
    if (r.at >= words_.size() || !std::count(choices.begin(), choices.end(), words_[r.at].text))
      return;
    const Word& word = words_[r.at];
    take({word.text}, r, out);
    Reading& now = out.back();
    std::map<std::string, Candidate> all;
    find_candidates(before_, before_.size(), all);
    find_candidates(words_, r.at, all);
    std::vector<Candidate> fit;
    for (const auto& [label, candidate] : all)
      if (candidate.pronouns.find(" " + word.text + " ") != std::string::npos)
        fit.push_back(candidate);

    const bool right = fit.size() == 1 && fit[0].person == who;
    if (as_subject)
      subject(now, r.at, word.text == "they" ? Number::plural : Number::singular, right && who);
    if (right)
      now.verdict.pronouns.push_back({word.at, fit[0].at});
    else if (fit.empty())
      now.wrong(&Verdict::antecedent, "'" + word.text + "' has no antecedent");
    else if (fit.size() > 1)
      now.wrong(&Verdict::antecedent,
                "'" + word.text + "' may be '" + fit[0].label + "' or '" + fit[1].label + "'");
    else
      now.wrong(&Verdict::antecedent, "'" + word.text + "' is '" + fit[0].label + "', not a " +
                                          (who ? "name or pair" : "topic"));
  }

  /// The reading has just taken "the bank".
  void bank(Reading& r) const {
    std::vector<Cue> cues;
    find_cues(before_, before_.size(), cues);
    find_cues(words_, r.at, cues);
    if (r.at == 2) subject(r, 1, Number::singular, false);  // form K
    if (cues.empty()) return r.wrong(&Verdict::sense, "'bank' has no cue");
    for (const Cue& cue : cues)
      if (cue.sense != cues[0].sense)
        return r.wrong(&Verdict::sense, "'bank' has cues of both senses");
    r.sense = cues[0].sense;
    r.verdict.banks.push_back({words_[r.at - 1].at, cues.back().at});
  }

  const Words& words_;
  const Words& before_;
  std::string story_sense_;
  std::size_t furthest_ = 0;
};

std::string misplacement(const std::string& name, std::size_t index, std::size_t count) {
  if (index >= 5) return "a story has 3 to 5 sentences";
  if (index + 1 == count && count < 3) return "a story has 3 to 5 sentences";
  const auto form =
      std::find_if(kForms.begin(), kForms.end(), [&](const Form& f) { return f.name == name; });
  if (form == kForms.end()) return "";
  const int here = index == 0 ? first : index + 1 == count ? last : between;
  if ((form->where & here) != 0) return "";
  return name + " does not " +
         (here == first  ? "open a story"
          : here == last ? "end a story"
                         : "stand in the middle");
}

}  // namespace

std::vector<Verdict> check_story(std::string_view line) {
  std::vector<Verdict> verdicts;
  Words before;
  std::string story_sense;
  for (std::size_t from = 0; from < line.size();) {
    std::string why;
    if (from > 0 && line[from] == ' ')
      ++from;
    else if (from > 0)
      why = "no space before it";
    const std::size_t to = std::min(line.find('.', from), line.size() - 1) + 1;
    const std::string_view text = line.substr(from, std::max(to, from) - from);
    const Words words = words_of(text, from, why);

    Sentence sentence(words, before, story_sense);
    Readings readings;
    for (const Form& form : kForms)
      for (Reading& r : sentence.read(form)) readings.push_back(std::move(r));
    Verdict verdict;
    const auto best =
        std::min_element(readings.begin(), readings.end(),
                         [](const auto& a, const auto& b) { return a.faults < b.faults; });
    if (best != readings.end()) verdict = best->verdict;
    for (const Reading& r : readings) verdict.readings += r.faults == 0 ? 1 : 0;
    if (why.empty() && readings.empty()) why = sentence.no_form();
    if (!why.empty()) {
      verdict.grammatical = false;
      verdict.fault = "grammar";
      verdict.why = why;
    }
    verdict.text = text;
    verdicts.push_back(std::move(verdict));

    std::vector<Cue> cues;
    find_cues(words, words.size(), cues);
    if (!cues.empty() && story_sense.empty()) story_sense = cues[0].sense;
    before = words;
    from = std::max(to, from);
  }
  for (std::size_t i = 0; i < verdicts.size(); ++i)
    verdicts[i].misplaced = misplacement(verdicts[i].form, i, verdicts.size());
  return verdicts;
}

}  // namespace headwise::test
