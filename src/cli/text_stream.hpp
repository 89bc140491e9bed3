// What a model writes, on its way to standard output.
#pragma once

#include <string>
#include <string_view>

namespace headwise::cli {

/// Whether standard output is a terminal.
bool writes_to_terminal();

/// Text that comes token by token, of which one may be a part of a character. For a terminal
/// everything that it would obey, or show as nothing, is escaped as in printable(), but for line
/// ends and tabs; else all bytes stay as they are.
class TextStream {
 public:
  explicit TextStream(bool terminal = writes_to_terminal()) : terminal_(terminal) {}

  /// What can be shown by now: all but the beginning of a character that is not complete.
  std::string take(std::string_view bytes);
  /// The rest: U+FFFD for a character that was not completed.
  std::string end();

 private:
  bool terminal_;
  std::string waiting_;
};

/// A whole text through a stream.
std::string shown(std::string_view text);

}  // namespace headwise::cli
