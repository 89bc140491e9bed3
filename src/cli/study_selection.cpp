#include "cli/study_selection.hpp"

#include <set>

#include "headwise/core/error.hpp"
#include "headwise/core/parse.hpp"

namespace headwise::cli {
namespace {

/// The parts of a text between separators; one part, perhaps empty, without any.
std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts{""};
  for (const char c : text)
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

}  // namespace

std::vector<Index> parse_list(const std::string& option, const std::string& text, Index count) {
  std::set<Index> all;
  const std::string whole = text.empty() ? fmt::format("0-{}", count - 1) : text;
  for (const std::string& part : parts_of(whole, ',')) {
    const std::vector<std::string> ends = parts_of(part, '-');
    const auto first = parse_number<Index>(ends.front()), last = parse_number<Index>(ends.back());
    require<UsageError>(first && last && ends.size() <= 2 && *first >= 0 && *first <= *last,
                        "{}: expected numbers such as 0,2,4-6, got '{}'", option, text);
    require<UsageError>(*last < count, "{}: {} is not below {}", option, *last, count);
    for (Index i = *first; i <= *last; ++i) all.insert(i);
  }
  return {all.begin(), all.end()};
}

Range Range::parse(const std::string& option, const std::string& text) {
  if (text.empty()) return {};
  const std::vector<std::string> ends = parts_of(text, ':');
  const auto number = [&](const std::string& part) {
    return part.empty() ? std::optional<Index>(0) : parse_number<Index>(part);
  };
  const auto begin = number(ends.front()), end = number(ends.back());
  require<UsageError>(
      ends.size() == 2 && begin && end && *begin >= 0 && (ends.back().empty() || *begin < *end),
      "{}: expected A:B with 0 <= A < B, such as 10:50, got '{}'", option, text);
  return {*begin, *end};
}

Range Range::within(Index tokens) const {
  const Range cut{begin, end == 0 ? tokens : std::min(end, tokens)};
  require<UsageError>(cut.begin < cut.end, "--range: begins at {}, but the text has {} tokens",
                      begin, tokens);
  return cut;
}

std::vector<study::HeadId> Selection::ids() const {
  std::vector<study::HeadId> all;
  for (const Index layer : layers)
    for (const Index head : heads) all.push_back({layer, head});
  return all;
}

}  // namespace headwise::cli
