#include "headwise/study/relations.hpp"

#include <set>
#include <tuple>

#include "headwise/data/stories.hpp"
#include "headwise/study/roles.hpp"
#include "support/catch.hpp"
#include "support/models.hpp"

using namespace headwise;
using namespace headwise::study;

namespace {

Tokenizer tokenizer_of(TokenizerKind kind) { return Tokenizer::learn(kind, builtin_text()); }

std::string text_of(const Tokenizer& tokenizer, const Questions& all, const Question& q,
                    Span span) {
  const auto ids = all.sequences.ids(q.sequence);
  return tokenizer.decode({ids.begin() + span.begin, ids.begin() + span.end});
}

/// A pattern that puts all weight of a span's tokens on one candidate.
std::vector<double> pointing(const Question& q, Index time, Index candidate) {
  std::vector<double> pattern(static_cast<std::size_t>(time * time));
  for (Index i = q.word.begin - 1; i < q.word.end - 1; ++i)
    pattern[static_cast<std::size_t>(i * time +
                                     q.candidates[static_cast<std::size_t>(candidate)].begin)] = 1;
  return pattern;
}

}  // namespace

TEST_CASE("questions are about the words that the stories link", "[study]") {
  for (const TokenizerKind kind :
       {TokenizerKind::character, TokenizerKind::byte, TokenizerKind::word}) {
    CAPTURE(name_of(kind));
    const Tokenizer tokenizer = tokenizer_of(kind);
    const Index context = kind == TokenizerKind::word ? 64 : 200;
    const Questions all = story_questions(tokenizer, context, 300, 5);
    std::map<Score, Index> asked;
    for (const Question& q : all.questions) {
      ++asked[q.relation];
      const std::string word = text_of(tokenizer, all, q, q.word);
      if (q.relation == Score::sense) CHECK((word == "bank" || word == "banks"));
      REQUIRE(q.answer.begin >= 0);
      REQUIRE(q.answer.end <= std::ssize(q.candidates));
      REQUIRE(q.answer.begin < q.answer.end);
      for (const Span& candidate : q.candidates) {
        REQUIRE(candidate.end <= q.word.begin);
        const std::string text = text_of(tokenizer, all, q, candidate);
        REQUIRE(text.find_first_of(" .,\n") == std::string::npos);
        REQUIRE(!text.empty());
      }
    }
    CHECK(asked[Score::subject] > 200);
    CHECK(asked[Score::antecedent] > 50);
    CHECK(asked[Score::sense] > 10);
  }
}

TEST_CASE("no question is asked twice after the same tokens", "[study]") {
  // Sentence by sentence: of few words many are alike.
  const Tokenizer tokenizer = tokenizer_of(TokenizerKind::word);
  const Questions all = story_questions(tokenizer, 10, 3000, 5);
  std::set<std::tuple<Score, std::vector<Id>, Index>> asked;
  for (const Question& q : all.questions) {
    const auto ids = all.sequences.ids(q.sequence);
    asked.emplace(q.relation, std::vector<Id>(ids.begin(), ids.begin() + q.word.end),
                  q.answer.begin);
  }
  CHECK(all.questions.size() > 500);
  CHECK(asked.size() == all.questions.size());
}

TEST_CASE("the answers of questions are the story's own", "[study]") {
  // Every verb of a story that fits is asked about once, and its subject's text is the answer's.
  const Tokenizer tokenizer = tokenizer_of(TokenizerKind::character);
  const std::vector<Story> told = stories(40, 9);
  const Questions all = story_questions(tokenizer, 4096, 40, 9);
  std::vector<std::string> expected, found;
  for (const Story& story : told) {
    for (const Agreement& a : story.verbs)
      if (a.subject.end <= a.verb.begin)
        expected.push_back(fmt::format("{}<{}", story.word(a.verb), story.word(a.subject)));
    for (const Reference& r : story.pronouns)
      if (r.antecedent.end <= r.pronoun.begin)
        expected.push_back(fmt::format("{}<{}", story.word(r.pronoun), story.word(r.antecedent)));
    for (const Bank& b : story.banks)
      if (b.cue.end <= b.word.begin)
        expected.push_back(fmt::format("{}<{}", story.word(b.word), story.word(b.cue)));
  }
  for (const Question& q : all.questions) {
    const Span words{q.candidates[static_cast<std::size_t>(q.answer.begin)].begin,
                     q.candidates[static_cast<std::size_t>(q.answer.end - 1)].end};
    found.push_back(fmt::format("{}<{}", text_of(tokenizer, all, q, q.word),
                                text_of(tokenizer, all, q, words)));
  }
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  CHECK(found == expected);
}

TEST_CASE("the most attended candidate is found, over all tokens of both words", "[study]") {
  const Questions all = story_questions(tokenizer_of(TokenizerKind::character), 200, 30, 2);
  const Index time = all.sequences.time();
  for (const Question& q : all.questions)
    for (Index c = 0; c < std::ssize(q.candidates); ++c) {
      const std::vector<double> pattern = pointing(q, time, c);
      REQUIRE(most_attended(pattern.data(), time, q) == c);
    }
}

TEST_CASE("a head that knows one place alone is explained by places", "[study]") {
  // One block whose head looks at token 2 of the sequence, whatever stands there.
  ModelConfig config{.vocab = 256, .layers = 1, .heads = 1, .width = 32, .context = 200};
  config.attention_only = true;
  Rng rng(1);
  Decoder<double> model(config, rng);
  model.tok.weight.value = Tensor<double>::zeros(model.tok.weight.value.shape());
  Tensor<double> places = Tensor<double>::zeros(model.pos.weight.value.shape());
  places.data()[2 * 32] = 1;  // place 2 alone is marked
  model.pos.weight.value = places;
  auto& attn = model.blocks[0].attn;
  for (Linear<double>* l : {&attn.w_q, &attn.w_k})
    l->weight.value = Tensor<double>::zeros(l->weight.value.shape());
  attn.w_q.bias.value.data()[0] = 50;
  attn.w_k.weight.value.data()[0] = 10;
  const Questions all = story_questions(tokenizer_of(TokenizerKind::byte), 200, 300, 3);
  HeadStudy head{.id = {0, 0}};
  head.on[On::stories] = relation_scores(model, all)[0];
  for (const auto& [relation, m] : head.on[On::stories]) {
    CAPTURE(name_of(relation));
    CHECK(m.value <= explained(head, relation) + 1e-12);
  }
  std::vector<HeadStudy> heads{head};
  name_roles(heads);
  CHECK(heads[0].label.empty());
}

TEST_CASE("even weights pick the longest word, and that is counted as knowing places alone",
          "[study]") {
  ModelConfig config{.vocab = 256, .layers = 1, .heads = 2, .width = 8, .context = 200};
  Rng rng(1);
  Decoder<double> model(config, rng);
  auto& attn = model.blocks[0].attn;
  attn.w_q.weight.value = Tensor<double>::zeros(attn.w_q.weight.value.shape());
  const Questions all = story_questions(tokenizer_of(TokenizerKind::byte), 200, 100, 3);
  const std::vector<Scores> scores = relation_scores(model, all);
  REQUIRE(scores.size() == 2);
  // Even weights look at a word by its length: the longest candidate, of equal ones the first.
  std::map<Score, std::pair<double, double>> right;  // and all
  std::map<Score, double> chance;
  for (const Question& q : all.questions) {
    Index longest = 0;
    const auto length = [&](Index c) {
      const Span s = q.candidates[static_cast<std::size_t>(c)];
      return s.end - s.begin;
    };
    for (Index c = 0; c < std::ssize(q.candidates); ++c)
      if (length(c) > length(longest)) longest = c;
    right[q.relation].first += longest >= q.answer.begin && longest < q.answer.end;
    right[q.relation].second += 1;
    chance[q.relation] += static_cast<double>(q.answer.end - q.answer.begin) /
                          static_cast<double>(q.candidates.size());
  }
  for (const auto& [relation, of] : right) {
    CAPTURE(name_of(relation));
    CHECK(scores[0].at(relation).value == Approx(of.first / of.second));
    CHECK(scores[1].at(relation).chance == Approx(chance[relation] / of.second));
    CHECK(scores[0].at(relation).baseline_place >= scores[0].at(relation).value);
    // What even weights reach is no role, however far it is above chance.
    CHECK(*scores[0].at(relation).p_baseline == 1);
  }
}
