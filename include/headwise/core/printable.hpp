// Foreign text in our messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace headwise {

/// `text` as one line that is safe on a terminal, at most about `most` bytes of it. For every
/// string that comes from outside (file contents, tensor names, paths, prompts) on its way into a
/// message. Control characters, invisible ones and bytes that are not UTF-8 are escaped as C does
/// (\n, \t, \x1b, \u202e); a backslash becomes \\. What is cut ends in "... (N bytes)".
std::string printable(std::string_view text, std::size_t most = 120);

/// A path for a message: whole, unless it is longer than any that a system opens.
inline std::string printable_path(std::string_view path) { return printable(path, 4096); }

}  // namespace headwise
