#include "headwise/data/task.hpp"

namespace headwise {
namespace {

std::string letters(Index length, Rng& rng) {
  std::string s;
  for (Index i = 0; i < length; ++i) s += static_cast<char>('a' + rng.below(26));
  return s;
}

}  // namespace

// Two layers can copy strings of a length exponential in their size (Jelassi et al. 2024,
// arXiv:2402.01032).
TaskSpec tasks::copy() {
  return {.name = "copy",
          .about = "--length letters of a-z, a tab, and the same letters again",
          .alphabet = "\t\nabcdefghijklmnopqrstuvwxyz",
          .length = 20,
          .longest = [](Index length) { return 2 * length + 2; },
          .accuracy = Accuracy::whole,
          .input = letters,
          .example = [](const std::string& input) { return line_example(input, input); }};
}

}  // namespace headwise
