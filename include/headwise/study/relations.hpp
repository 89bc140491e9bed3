// Whether a head looks from a word to the word that it depends on, in the built-in stories.
#pragma once

#include "headwise/data/tokenizer.hpp"
#include "headwise/study/scores.hpp"

namespace headwise::study {

/// Tokens [begin, end) of a sequence.
struct Span {
  Index begin = 0, end = 0;
};

/// From one word of a sequence: which of the words before it does it depend on?
struct Question {
  Score relation;  ///< subject, antecedent or sense
  Index sequence = 0;
  Span word;
  std::vector<Span> candidates;  ///< the words before it, in order
  Span answer;                   ///< those of the candidates that are right
};

struct Questions {
  Sequences sequences;
  std::vector<Question> questions;
};

/// Questions about new stories of the built-in grammar, as many sentences as said: from each verb
/// its subject, from each pronoun its antecedent, from each "bank" the word before it that decides
/// its sense. A sequence begins at the sentence before the word's, or at its own where both do not
/// fit the context; what does not fit even then is not asked. All are distinct: no question is
/// asked twice after the same tokens. Throws DataError when the tokenizer does not know a character
/// of the stories.
Questions story_questions(const Tokenizer& tokenizer, Index context, Index sentences,
                          std::uint64_t seed);

/// How often a head looks most at the right word (Clark et al. 2019, arXiv:1906.04341, sec. 4.2).
/// The attention from a word to a word is the sum over the tokens of the second, the mean over
/// those of the first; only words before the first count. A causal model must know what a word
/// depends on before it is there, so the word's tokens are taken one earlier: at those places it
/// predicts them. value: the share of questions whose most attended candidate is right. chance: of
/// one candidate drawn at random. baseline: of the best fixed offset in words, always "the k-th
/// word before". baseline_place: of the best other rule that knows places alone: the k-th word of
/// the sequence, the word at a token's place, or even weights, which pick the longest word. Per
/// head, in the order of heads_of().
template <Real T>
std::vector<Scores> relation_scores(const Decoder<T>& model, const Questions& questions);

/// The candidate that the weights (T,T) of a sequence's pattern look at most, from 0. Throws
/// ShapeError for a word at place 0, which nothing predicts.
template <Real T>
Index most_attended(const T* pattern, Index stride, const Question& question);

}  // namespace headwise::study
