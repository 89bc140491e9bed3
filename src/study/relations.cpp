#include "headwise/study/relations.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "headwise/core/parallel.hpp"
#include "headwise/data/stories.hpp"

namespace headwise::study {
namespace {

constexpr Score kRelations[] = {Score::subject, Score::antecedent, Score::sense};

/// A word and what it depends on, in bytes of the story.
struct Link {
  Score relation;
  Mention word, answer;
};

std::vector<Link> links_of(const Story& story) {
  std::vector<Link> links;
  for (const Agreement& a : story.verbs) links.push_back({Score::subject, a.verb, a.subject});
  for (const Reference& r : story.pronouns)
    links.push_back({Score::antecedent, r.pronoun, r.antecedent});
  for (const Bank& b : story.banks) links.push_back({Score::sense, b.word, b.cue});
  std::erase_if(links, [](const Link& l) { return l.answer.end > l.word.begin; });
  return links;
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}

/// The tokens of a story from a byte on, and where its words are.
struct Window {
  Index start;  ///< byte of the story
  std::vector<Id> ids;
  std::vector<Index> begins;  ///< byte of each token, and the end
  std::vector<Mention> words;

  Window(const Tokenizer& tokenizer, const Story& story, Index from) : start(from) {
    // A story begins behind a line's end, as in the corpus.
    const std::string before = from == 0 ? "\n" : "";
    ids = tokenizer.encode(before + story.text.substr(static_cast<std::size_t>(from)));
    Index at = from - std::ssize(before);
    for (const Id id : ids) {
      begins.push_back(at);
      at += tokenizer.bytes({&id, 1});
    }
    begins.push_back(at);
    const auto size = std::ssize(story.text);
    const auto letter = [&](Index i) { return is_letter(story.text[static_cast<std::size_t>(i)]); };
    for (Index i = from; i < size;) {
      Index end = i;
      while (end < size && letter(end)) ++end;
      if (end > i) words.push_back({i, end});
      i = std::max(end, i + 1);
    }
  }

  /// The tokens that lie within some bytes.
  [[nodiscard]] Span tokens(const Mention& m) const {
    const auto place = [&](Index byte) {
      return std::lower_bound(begins.begin(), begins.end(), byte) - begins.begin();
    };
    return {place(m.begin), place(m.end)};
  }
};

/// The byte where the sentence of a word begins, `back` sentences earlier.
Index sentence_start(const Story& story, const Mention& word, Index back) {
  const auto after = std::upper_bound(story.sentences.begin(), story.sentences.end(), word.begin);
  const Index sentence = after - story.sentences.begin() - 1;
  return story.sentences[static_cast<std::size_t>(std::max<Index>(0, sentence - back))];
}

/// The question about a link in a window; nothing when an end of it lies outside.
std::optional<Question> ask(const Window& window, const Link& link, Index context) {
  Question q{
      .relation = link.relation, .word = window.tokens(link.word), .candidates = {}, .answer = {}};
  if (link.answer.begin < window.start || q.word.end > context || q.word.end == q.word.begin)
    return std::nullopt;
  q.answer = {-1, -1};
  for (const Mention& word : window.words) {
    if (word.end > link.word.begin) break;
    const Index place = std::ssize(q.candidates);
    if (word.begin >= link.answer.begin && word.end <= link.answer.end) {
      if (q.answer.begin < 0) q.answer.begin = place;
      q.answer.end = place + 1;
    }
    q.candidates.push_back(window.tokens(word));
  }
  if (q.answer.begin < 0) return std::nullopt;
  return q;
}

Sequences padded(const std::vector<std::vector<Id>>& rows) {
  Sequences all;
  std::size_t time = 1;
  for (const auto& row : rows) time = std::max(time, row.size());
  std::vector<Id> ids, next;
  for (const auto& row : rows) {
    all.lengths.push_back(std::ssize(row));
    for (std::size_t i = 0; i < time; ++i) {
      ids.push_back(i < row.size() ? row[i] : row.front());
      next.push_back(i + 1 < row.size() ? row[i + 1] : kIgnore);
    }
  }
  const Shape shape{std::ssize(rows), static_cast<Index>(time)};
  all.batch = {Ids(shape, std::move(ids)), Ids(shape, std::move(next))};
  return all;
}

/// Questions about one relation, and how they are answered by who knows nothing but places.
class ByPlace {
 public:
  ByPlace(const std::vector<Question>& questions, Score relation) {
    for (const Question& q : questions)
      if (q.relation == relation) asked_.push_back(&q);
  }
  [[nodiscard]] Index asked() const { return std::ssize(asked_); }

  /// How often a rule is right that picks a candidate, or none (below 0 or too large).
  [[nodiscard]] double right(FunctionRef<Index(const Question&)> pick) const {
    Index right = 0;
    for (const Question* q : asked_) {
      const Index place = pick(*q);
      right += place >= q->answer.begin && place < q->answer.end;
    }
    return static_cast<double>(right) / static_cast<double>(asked_.size());
  }
  /// "Always the k-th word before", with the best k.
  void best_offset(Measure& m) const {
    for (Index k = 1; k <= most_candidates(); ++k) {
      const double found = right([&](const Question& q) { return std::ssize(q.candidates) - k; });
      if (found > m.baseline) m.baseline = found, m.baseline_offset = k;
    }
  }
  /// The best of the rest: the k-th word of the sequence, the word at a token's place, and the
  /// longest word, which even weights pick.
  [[nodiscard]] double best_place() const {
    double best = right([](const Question& q) {
      const auto length = [](const Span& s) { return s.end - s.begin; };
      return std::max_element(q.candidates.begin(), q.candidates.end(),
                              [&](const Span& a, const Span& b) { return length(a) < length(b); }) -
             q.candidates.begin();
    });
    Index last = 0;
    for (const Question* q : asked_) last = std::max(last, q->word.begin);
    for (Index k = 0; k < most_candidates(); ++k)
      best = std::max(best, right([&](const Question&) { return k; }));
    for (Index token = 0; token < last; ++token)
      best = std::max(best, right([&](const Question& q) {
                        const auto behind =
                            std::find_if(q.candidates.begin(), q.candidates.end(),
                                         [&](const Span& s) { return s.begin > token; });
                        return behind - q.candidates.begin() - 1;
                      }));
    return best;
  }
  /// The bound of p for so many right answers, when each is right with that probability, or by
  /// chance where that is more.
  [[nodiscard]] double p(double sum, double probability) const {
    ShuffleBound bound;
    for (const Question* q : asked_)
      bound.add(ShuffleBound::of_right(std::max(probability, chance(*q))));
    return bound.p(sum);
  }
  [[nodiscard]] double mean_chance() const {
    double sum = 0;
    for (const Question* q : asked_) sum += chance(*q);
    return sum / static_cast<double>(asked_.size());
  }

 private:
  static double chance(const Question& q) {
    return static_cast<double>(q.answer.end - q.answer.begin) /
           static_cast<double>(q.candidates.size());
  }
  [[nodiscard]] Index most_candidates() const {
    Index most = 0;
    for (const Question* q : asked_) most = std::max<Index>(most, std::ssize(q->candidates));
    return most;
  }

  std::vector<const Question*> asked_;
};

}  // namespace

Questions story_questions(const Tokenizer& tokenizer, Index context, Index sentences,
                          std::uint64_t seed) {
  Questions all;
  std::vector<std::vector<Id>> rows;
  // The same question after the same tokens is one observation, in whatever stories it occurs.
  std::set<std::tuple<Score, std::vector<Id>, Index, Index>> asked;
  for (const Story& story : stories(sentences, seed)) {
    std::map<Index, std::pair<Window, Index>> windows;  // by start: and which sequence it is
    const auto window_at = [&](Index start) -> auto& {
      auto at = windows.find(start);
      if (at == windows.end())
        at = windows.emplace(start, std::pair(Window(tokenizer, story, start), Index{-1})).first;
      return at->second;
    };
    for (const Link& link : links_of(story))
      for (const Index back : {1, 0}) {
        auto& [window, sequence] = window_at(sentence_start(story, link.word, back));
        std::optional<Question> q = ask(window, link, context);
        if (!q) continue;
        const auto end = window.ids.begin() + q->word.end;
        if (!asked
                 .emplace(q->relation, std::vector(window.ids.begin(), end), q->word.begin,
                          q->answer.begin)
                 .second)
          break;
        if (sequence < 0) {
          sequence = std::ssize(rows);
          rows.emplace_back();
        }
        // No longer than what is asked about needs.
        auto& row = rows[static_cast<std::size_t>(sequence)];
        if (std::ssize(row) < q->word.end) row.assign(window.ids.begin(), end);
        q->sequence = sequence;
        all.questions.push_back(std::move(*q));
        break;
      }
  }
  if (!rows.empty()) all.sequences = padded(rows);
  return all;
}

template <Real T>
Index most_attended(const T* pattern, Index stride, const Question& question) {
  require(question.word.begin >= 1, "relations: nothing predicts the word at place 0");
  Index best = 0;
  double most = -1;
  for (std::size_t c = 0; c < question.candidates.size(); ++c) {
    double weight = 0;  // from where the word's tokens are predicted
    for (Index i = question.word.begin - 1; i < question.word.end - 1; ++i)
      for (Index j = question.candidates[c].begin; j < question.candidates[c].end; ++j)
        weight += static_cast<double>(pattern[i * stride + j]);
    if (weight > most) most = weight, best = static_cast<Index>(c);
  }
  return best;
}

template <Real T>
std::vector<Scores> relation_scores(const Decoder<T>& model, const Questions& questions) {
  const Index heads = model.config.heads, all_heads = model.config.layers * heads;
  std::vector<Scores> scores(static_cast<std::size_t>(all_heads));
  if (questions.questions.empty()) return scores;
  const Index time = questions.sequences.time(), count = std::ssize(questions.questions);
  std::vector<std::uint8_t> right(static_cast<std::size_t>(all_heads * count));
  for_each_pattern<T>(model, questions.sequences, [&](const SeenLayer<T>& seen) {
    parallel_for(count, 16, [&](Index begin, Index end) {
      for (Index n = begin; n < end; ++n) {
        const Question& q = questions.questions[static_cast<std::size_t>(n)];
        const Index b = q.sequence - seen.first;
        if (b < 0 || b >= seen.pattern.shape()[0]) continue;
        for (Index h = 0; h < heads; ++h) {
          const Index place =
              most_attended(seen.pattern.data() + (b * heads + h) * time * time, time, q);
          right[static_cast<std::size_t>((seen.layer * heads + h) * count + n)] =
              place >= q.answer.begin && place < q.answer.end;
        }
      }
    });
  });
  for (const Score relation : kRelations) {
    const ByPlace by_place(questions.questions, relation);
    if (by_place.asked() == 0) continue;
    Measure same{.chance = by_place.mean_chance()};  // for every head
    by_place.best_offset(same);
    same.baseline_place = by_place.best_place();
    const double known = std::max(same.baseline, same.baseline_place);
    for (Index head = 0; head < all_heads; ++head) {
      double sum = 0;
      for (Index n = 0; n < count; ++n)
        if (questions.questions[static_cast<std::size_t>(n)].relation == relation)
          sum += right[static_cast<std::size_t>(head * count + n)];
      Measure& m = scores[static_cast<std::size_t>(head)][relation] = same;
      m.value = sum / static_cast<double>(by_place.asked());
      m.p = by_place.p(sum, 0);
      m.p_baseline = by_place.p(sum, known);
    }
  }
  return scores;
}

#define HEADWISE_INSTANTIATE(T)                                   \
  template Index most_attended(const T*, Index, const Question&); \
  template std::vector<Scores> relation_scores(const Decoder<T>&, const Questions&);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise::study
