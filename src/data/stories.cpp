// The forms and words are those of datasets/README.md; O1, M3, .. are its names.
#include "headwise/data/stories.hpp"

#include <algorithm>

#include "data/story_words.hpp"
#include "headwise/core/error.hpp"
#include "headwise/core/random.hpp"
#include "headwise/data/text.hpp"

namespace headwise {
namespace {

using namespace story_words;

enum class Kind { person, animal, thing };  // a pair is a person

/// Whom or what a story is about.
struct Entity {
  Kind kind = Kind::person;
  std::string name;  ///< as it stands in the text: "Ann and Ben", "boats"
  Number number = Number::singular;
  Gender gender = Gender::none;
  Mention noun = {};    ///< the last time it was called by its name
  Index sentence = -2;  ///< .. and the sentence of that, from 0
};

enum class Case { subject, object };

Word pronoun(const Entity& e, Case which) {
  const bool subject = which == Case::subject;
  if (e.number == Number::plural) return subject ? "they" : "them";
  if (e.gender == Gender::feminine) return subject ? "she" : "her";
  if (e.gender == Gender::masculine) return subject ? "he" : "him";
  return "it";
}

/// Tells one story, sentence by sentence. Two calls that draw never stand in one argument list: C++
/// leaves their order open, and the stories must be the same everywhere.
class Teller {
 public:
  explicit Teller(Rng rng) : rng_(rng) {}

  Story tell();

 private:
  using Form = void (Teller::*)();

  template <std::size_t n>
  const auto& pick(const auto(&list)[n]) {
    return list[rng_.below(static_cast<Index>(n))];
  }
  bool chance(Index percent) { return rng_.below(100) < percent; }

  // Words. say() returns where it wrote.
  Mention say(Word words);
  Mention noun(Word word, Number number, Sense sense = Sense::none);
  void verb(const Verb& v, const Mention& subject);
  void sentence(Form form);

  // Parts, by their names in the grammar.
  Mention call(Entity& e);
  Mention refer(Entity& e, Case which, Index pronoun_percent = 60);
  Entity& someone();
  Mention topic();
  void new_topic();
  void places();
  void place_phrase();
  void topic_place_phrase();
  void adjective(const Entity& e);
  void act(const Entity& e, const Mention& subject);
  void say_of(const Entity& e, const Mention& subject);
  void because_or_but();
  void bank();

  // Sentences.
  void o1(), o2(), c(), i(), m1(), m2(), m3(), m4(), m5(), m6(), m7(), k(), e1(), e2();

  void cast();
  Form middle();

  Rng rng_;
  Story story_;
  std::vector<Mention> nouns_;  // of this sentence, for attractors
  Entity topic_;
  std::vector<Entity> people_;  // one person, a pair, or a girl and a boy
  Word look_, last_adjective_;
  Sense sense_ = Sense::none;
  Mention cue_;
  Index cue_sentence_ = -2, sentence_ = -1;
  bool begins_ = false;
  std::vector<Form> told_;
};

Mention Teller::say(Word words) {
  if (!begins_ ? words.front() != ',' : !story_.text.empty()) story_.text += ' ';
  const auto begin = static_cast<Index>(story_.text.size());
  if (begins_) story_.sentences.push_back(begin);
  story_.text += words;
  if (begins_ && words.front() >= 'a')
    story_.text[static_cast<std::size_t>(begin)] = static_cast<char>(words.front() - 'a' + 'A');
  begins_ = false;
  return {.begin = begin, .end = static_cast<Index>(story_.text.size())};
}

Mention Teller::noun(Word word, Number number, Sense sense) {
  Mention m = say(word);
  m.number = number;
  m.sense = sense;
  nouns_.push_back(m);
  return m;
}

void Teller::verb(const Verb& v, const Mention& subject) {
  Mention m = say(subject.number == Number::plural ? v.plural : v.singular);
  m.number = subject.number;
  Agreement agreement{m, subject, {}};
  for (const Mention& other : nouns_)
    if (other.begin > subject.begin) agreement.attractors.push_back(other);
  story_.verbs.push_back(std::move(agreement));
}

void Teller::sentence(Form form) {
  begins_ = true;
  nouns_.clear();
  last_adjective_ = {};
  ++sentence_;
  told_.push_back(form);
  (this->*form)();
  story_.text += '.';
}

/// By name.
Mention Teller::call(Entity& e) {
  e.noun = noun(e.name, e.number);
  nouns_.back().gender = e.noun.gender = e.gender;
  e.sentence = sentence_;
  return e.noun;
}

/// By a pronoun where its noun is near: always in the same sentence, and in the one after it in so
/// many percent of the cases.
Mention Teller::refer(Entity& e, Case which, Index pronoun_percent) {
  const bool here = e.sentence == sentence_;
  if (!here && (e.sentence != sentence_ - 1 || !chance(pronoun_percent))) {
    if (e.kind != Kind::person) say("the");
    return call(e);
  }
  Mention m = say(pronoun(e, which));
  m.number = e.number;
  m.gender = e.gender;
  story_.pronouns.push_back({m, e.noun});
  return m;
}

/// The first of the people more often.
Entity& Teller::someone() { return people_.size() == 2 && chance(35) ? people_[1] : people_[0]; }

Mention Teller::topic() {
  say("the");
  const Mention m = call(topic_);
  topic_place_phrase();
  return m;
}

void Teller::new_topic() {
  say(topic_.number == Number::plural ? pick(kNumbers) : "a");
  say(look_);
  call(topic_);
}

void Teller::places() {
  const bool plural = chance(50);
  noun(std::string(pick(kPlaces)) + (plural ? "s" : ""),
       plural ? Number::plural : Number::singular);
}

void Teller::place_phrase() {
  say(pick(kPrepositions));
  say("the");
  places();
}

/// "near the bank" only where the reader can know which bank.
void Teller::topic_place_phrase() {
  if (cue_sentence_ == sentence_ - 1 && chance(70)) {
    say(pick(kPrepositions));
    bank();
  } else if (chance(75)) {
    place_phrase();
  }
}

void Teller::bank() {
  say("the");
  story_.banks.push_back({noun("bank", Number::singular, sense_), cue_});
}

/// Never the same twice in a sentence.
void Teller::adjective(const Entity& e) {
  Word word;
  do {
    if (e.kind != Kind::person && chance(25))
      word = look_;
    else
      word = e.kind == Kind::thing ? pick(kStates) : pick(kFeelings);
  } while (word == last_adjective_);
  last_adjective_ = word;
  say(word);
}

void Teller::act(const Entity& e, const Mention& subject) {
  verb(e.kind == Kind::thing ? pick(kStir) : pick(kLive), subject);
}

void Teller::say_of(const Entity& e, const Mention& subject) {
  if (chance(50)) {
    verb(kBe, subject);
    adjective(e);
  } else {
    act(e, subject);
    say(pick(kHow));
  }
}

void Teller::because_or_but() { say(chance(60) ? "because" : "but"); }

void Teller::o1() {
  const Mention who = call(people_[0]);
  verb(pick(kGo), who);
  say("to the");
  places();
  say("and");
  verb(pick(kTake), who);
  new_topic();
}

void Teller::o2() {
  verb(kHave, call(people_[0]));
  new_topic();
  say("and");
  const Mention who = call(people_[1]);
  verb(pick(kTake), who);
  refer(topic_, Case::object);
}

void Teller::c() {
  const Mention who = refer(someone(), Case::subject);
  const Cue& cue = sense_ == Sense::river ? pick(kRiver) : pick(kMoney);
  verb(cue.verb, who);
  say(cue.rest);
  cue_ = noun(cue.noun, cue.number, sense_);
  cue_sentence_ = sentence_;
  if (chance(80)) place_phrase();
  say("and");
  const Phrase& visit = pick(kVisit);
  verb(visit.verb, who);
  say(visit.rest);
  bank();
}

void Teller::i() {
  const Mention who = refer(someone(), Case::subject);
  verb(pick(kTake), who);
  new_topic();
  topic_place_phrase();
}

void Teller::m1() {
  verb(kBe, topic());
  adjective(topic_);
  say("and");
  adjective(topic_);
}

void Teller::m2() {
  const Mention subject = topic();
  act(topic_, subject);
  say(pick(kHow));
  say("and");
  verb(kBe, subject);
  adjective(topic_);
}

void Teller::m3() {
  verb(kBe, topic());
  adjective(topic_);
  because_or_but();
  say_of(topic_, refer(topic_, Case::subject));
}

void Teller::m4() {
  say_of(topic_, refer(topic_, Case::subject, 100));
  say(", so");
  const Mention who = refer(someone(), Case::subject);
  verb(pick(kTake), who);
  refer(topic_, Case::object, 100);
}

void Teller::m5() {
  const Mention who = refer(someone(), Case::subject);
  verb(pick(kTake), who);
  topic();
  because_or_but();
  say_of(topic_, refer(topic_, Case::subject));
}

void Teller::m6() {
  Entity& person = someone();
  const Mention who = refer(person, Case::subject);
  verb(pick(kTake), who);
  topic();
  say("and");
  verb(kBe, who);
  adjective(person);
}

void Teller::m7() {
  const Mention subject = topic();
  verb(pick(kMeet), subject);
  refer(someone(), Case::object);
  say("and");
  verb(kBe, subject);
  adjective(topic_);
}

void Teller::k() {
  bank();
  const Mention subject = nouns_.back();
  if (chance(70)) place_phrase();
  verb(kBe, subject);
  say(sense_ == Sense::river ? pick(kRiverBank) : pick(kMoneyBank));
  say(", so");
  Entity& person = someone();
  const Mention who = refer(person, Case::subject);
  if (chance(40)) {
    verb(pick(kGo), who);
    say("to the");
    places();
  } else {
    say_of(person, who);
  }
}

void Teller::e1() {
  Entity& person = someone();
  const Mention who = refer(person, Case::subject);
  verb(kBe, who);
  adjective(person);
  say("and");
  verb(pick(kGo), who);
  say("home");
  const bool met = topic_.sentence >= 0;
  if (!met || chance(60)) {
    say("past the");
    places();
    if (!met || chance(50)) return;
  }
  say("with");
  refer(topic_, Case::object);
}

void Teller::e2() {
  say("at night");
  act(topic_, topic());
  say("and");
  Entity& person = someone();
  act(person, refer(person, Case::subject));
  say(pick(kHow));
}

/// Who the story is about, and what. A pair meets one thing, so that "they" is the pair.
void Teller::cast() {
  Entity girl{.name = std::string(pick(kGirls)), .gender = Gender::feminine};
  Entity boy{.name = std::string(pick(kBoys)), .gender = Gender::masculine};
  if (chance(50)) std::swap(girl, boy);
  const bool pair = chance(20);
  if (pair)
    people_ = {{.name = girl.name + " and " + boy.name, .number = Number::plural}};
  else
    people_ = {girl, boy};
  const bool animal = chance(60), plural = !pair && chance(60);
  topic_ = {.kind = animal ? Kind::animal : Kind::thing,
            .name = std::string(animal ? pick(kAnimals) : pick(kThings)) + (plural ? "s" : ""),
            .number = plural ? Number::plural : Number::singular,
            .gender = Gender::neuter};
  look_ = pick(kLooks);
}

/// A form that fits here and was not told yet.
Teller::Form Teller::middle() {
  const bool met = topic_.sentence >= 0, near = topic_.sentence == sentence_;
  if (!met && chance(60)) return &Teller::i;
  constexpr Form kForms[] = {&Teller::m1, &Teller::m2, &Teller::m3, &Teller::m4,
                             &Teller::m5, &Teller::m6, &Teller::m7};
  for (;;) {
    const Form form = pick(kForms);
    if (form == &Teller::m4 && !near) continue;
    if (form == &Teller::m7 && topic_.kind != Kind::animal) continue;
    if (std::find(told_.begin(), told_.end(), form) == told_.end()) return form;
  }
}

Story Teller::tell() {
  cast();
  const Index sentences = 3 + rng_.below(3);
  const bool about_bank = chance(50);
  const Index bank_at = about_bank ? (sentences > 3 && chance(40) ? 1 : 0) : -1;
  sense_ = chance(50) ? Sense::river : Sense::money;
  // A girl and a boy where both have something to do; else the first alone.
  const bool both = people_.size() == 2 && bank_at != 0 && chance(50);
  if (!both) people_.resize(1);
  sentence(bank_at == 0 ? &Teller::c : both ? &Teller::o2 : &Teller::o1);
  while (sentence_ + 2 < sentences) {
    if (sentence_ + 1 == bank_at)
      sentence(&Teller::c);
    else if (cue_sentence_ == sentence_ && chance(80))
      sentence(&Teller::k);
    else
      sentence(middle());
  }
  sentence(chance(65) ? &Teller::e1 : &Teller::e2);
  return std::move(story_);
}

}  // namespace

std::span<const std::string_view> names_of(Number /*any*/) {
  static constexpr std::string_view kNames[] = {"singular", "plural"};
  return kNames;
}
std::span<const std::string_view> names_of(Gender /*any*/) {
  static constexpr std::string_view kNames[] = {"none", "feminine", "masculine", "neuter"};
  return kNames;
}
std::span<const std::string_view> names_of(Sense /*any*/) {
  static constexpr std::string_view kNames[] = {"none", "river", "money"};
  return kNames;
}

std::vector<Story> stories(Index sentences, std::uint64_t seed) {
  require<ParameterError>(sentences >= 1, "sentences: must be >= 1, got {}", sentences);
  std::vector<Story> all;
  for (Index told = 0; told < sentences;) {
    all.push_back(Teller(stream(seed, Purpose::stories, std::ssize(all))).tell());
    told += static_cast<Index>(all.back().sentences.size());
  }
  return all;
}

std::string stories_text(const std::vector<Story>& stories) {
  std::string text;
  for (const Story& story : stories) text += story.text + '\n';
  return text;
}

std::string_view builtin_text() {
  static const std::string text = stories_text(stories(kCorpusSentences, kCorpusSeed));
  return text;
}

}  // namespace headwise
