// Which part of the patterns is shown: --layers, --heads, --range.
#pragma once

#include <string>
#include <vector>

#include "headwise/study/head.hpp"

namespace headwise::cli {

/// Numbers below `count` as users list them: "0,2,4-6"; all of them for "". In rising order, each
/// once. Throws UsageError, naming the option, for anything else.
std::vector<Index> parse_list(const std::string& option, const std::string& text, Index count);

/// Places [begin, end) of a text, "A:B"; either may be missing. Throws UsageError, naming the
/// option, unless 0 <= A < B.
struct Range {
  Index begin = 0, end = 0;  ///< end 0: to the text's own

  static Range parse(const std::string& option, const std::string& text);
  /// Cut to a text of so many tokens. Throws UsageError when nothing is left of it.
  [[nodiscard]] Range within(Index tokens) const;
};

struct Selection {
  std::vector<Index> layers, heads;
  Range range;

  [[nodiscard]] std::vector<study::HeadId> ids() const;
};

}  // namespace headwise::cli
