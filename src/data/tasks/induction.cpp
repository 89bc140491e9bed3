// What an induction head is for (Olsson et al. 2022, arXiv:2209.11895): find the earlier copy of
// this letter, and predict the letter after it. The permutation is a fresh one in each sequence, so
// it cannot be learned; and the copy stands at no fixed offset, since walks go round cycles of
// every length and jump.
#include <algorithm>

#include "headwise/data/task.hpp"

namespace headwise {
namespace {

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEF";
constexpr Index kCount = kLetters.size();
constexpr double kJump = 0.2;

/// The next letter is the image of this one or, with probability kJump, any letter.
std::string walk_once(Index length, Rng& rng) {
  const std::vector<Index> image = rng.permutation(kCount);
  std::string walk;
  for (Index i = 0, at = rng.below(kCount); i < length; ++i) {
    walk += kLetters[static_cast<std::size_t>(at)];
    at = rng.uniform() < kJump ? rng.below(kCount) : image[static_cast<std::size_t>(at)];
  }
  return walk;
}

/// A newline, which plays the mark of the beginning, and the walk. A letter counts when the one
/// before it has occurred earlier in the walk.
Example with_counts(const std::string& walk) {
  Example e{"\n" + walk, std::vector<std::uint8_t>(walk.size() + 1)};
  for (std::size_t i = 1; i < walk.size(); ++i) e.counted[i + 1] = walk.find(walk[i - 1]) < i - 1;
  return e;
}

/// A walk in which something counts. Of 34 letters or more every walk is one: there are only 32.
std::string counting_walk(Index length, Rng& rng) {
  for (;;) {
    std::string walk = walk_once(length, rng);
    const Example e = with_counts(walk);
    if (std::count(e.counted.begin(), e.counted.end(), 1) > 0) return walk;
  }
}

}  // namespace

// How well it can be done: once the earlier copy was followed by its image, a predictor that knows
// the rule is right with probability 0.8 + 0.2/32 = 0.806, at a loss of 1.157 nats (the rest evenly
// over 31 letters). But that follower is the image with probability 0.806 only: whoever copies the
// most frequent follower so far is right for 0.68 of the letters that count, which are 0.56 of all.
TaskSpec tasks::induction() {
  return {.name = "induction",
          .about =
              "a newline and a walk of --length letters on a random permutation of 32, fresh "
              "for each sequence",
          .alphabet = "\nABCDEFabcdefghijklmnopqrstuvwxyz",
          .length = 64,  // a model reads the newline and 63 letters: 64 tokens
          .least = 3,    // the third letter is the first that can count
          .longest = [](Index length) { return length + 1; },
          .accuracy = Accuracy::each,
          .input = counting_walk,
          .example = with_counts};
}

}  // namespace headwise
