// How many sentences of a model's sample follow the grammar of the stories:
//   headwise sample RUN --tokens 20000 | story_check [--corpus FILE]
// Lines are stories. What the sample's two ends cut off is not counted: a first sentence that does
// not begin with a capital letter, a last one without its full stop.
#include <fmt/format.h>

#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "headwise/core/error.hpp"
#include "headwise/data/text.hpp"
#include "support/story_checker.hpp"

using namespace headwise;
using test::check_story;
using test::Verdict;

namespace {

constexpr Index kExamples = 10;

struct Failures {
  Index count = 0;
  std::vector<std::string> examples;
};

/// Every sentence of a text, cut as the checker does.
std::set<std::string, std::less<>> sentences_of(std::string_view text) {
  std::set<std::string, std::less<>> sentences;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);)
    for (std::size_t from = 0; from < line.size();) {
      const std::size_t to = std::min(line.find('.', from), line.size() - 1) + 1;
      sentences.insert(line.substr(from, to - from));
      from = to < line.size() && line[to] == ' ' ? to + 1 : to;
    }
  return sentences;
}

std::string share(Index part, Index whole) {
  return whole == 0 ? fmt::format("{} of 0", part)
                    : fmt::format("{} of {} ({:.1f} %)", part, whole,
                                  100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

int check(std::istream& in, std::string_view corpus) {
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (text.empty()) {
    std::cerr << "story_check: nothing on standard input\n";
    return 1;
  }
  const auto known = sentences_of(corpus);
  Index sentences = 0, parsed = 0, fresh = 0, fresh_parsed = 0, misplaced = 0, placed_of = 0;
  std::map<std::string, Failures> failures;

  std::istringstream lines(text);
  bool first_line = true;
  for (std::string line; std::getline(lines, line); first_line = false) {
    const bool last_line = lines.eof();  // no newline after it: the story may go on
    const std::vector<Verdict> story = check_story(line);
    for (std::size_t i = 0; i < story.size(); ++i) {
      const Verdict& v = story[i];
      const char head = v.text.empty() ? ' ' : v.text.front();
      if (first_line && i == 0 && (head < 'A' || head > 'Z')) continue;
      if (last_line && i + 1 == story.size() && !v.text.ends_with('.')) continue;
      const bool is_new = !known.contains(v.text);
      ++sentences;
      parsed += v.parses() ? 1 : 0;
      fresh += is_new ? 1 : 0;
      fresh_parsed += is_new && v.parses() ? 1 : 0;
      if (!first_line && !last_line && !v.form.empty()) {
        ++placed_of;
        misplaced += v.misplaced.empty() ? 0 : 1;
      }
      if (v.parses()) continue;
      Failures& such = failures[v.fault];
      if (such.count++ >= kExamples) continue;
      const bool looks_back = i > 0 && !(v.antecedent && v.sense);
      such.examples.push_back(fmt::format("{}{}\n      {}",
                                          looks_back ? fmt::format("({}) ", story[i - 1].text) : "",
                                          v.text, v.why));
    }
  }

  fmt::print("sentences           {}\n", sentences);
  fmt::print("parse               {}\n", share(parsed, sentences));
  fmt::print("new                 {}, not in the corpus\n", share(fresh, sentences));
  fmt::print("new that parse      {}\n", share(fresh_parsed, fresh));
  fmt::print("out of their place  {}, stories cut off left out\n", share(misplaced, placed_of));
  for (const auto& [fault, such] : failures) {
    fmt::print("\n{}: {}\n", fault, such.count);
    for (const std::string& example : such.examples) fmt::print("    {}\n", example);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (!args.empty() && (args.size() != 2 || args[0] != "--corpus")) {
    std::cerr << "usage: story_check [--corpus FILE] < sample\n";
    return 2;
  }
  try {
    const std::string corpus = args.empty() ? std::string(builtin_text()) : read_text(args[1]);
    return check(std::cin, corpus);
  } catch (const Error& e) {
    std::cerr << "story_check: " << e.what() << "\n";
    return 2;
  }
}
