// Standard error: notes, warnings, errors and progress, all by this one way. And standard output,
// so far.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

namespace headwise::cli {

/// Writes to standard error. What cannot be written there (a full disk, a closed pipe) is dropped:
/// no message is worth the work that it speaks of.
template <class... A>
void print_message(fmt::format_string<A...> text, A&&... args) {
  const std::string line = fmt::format(text, std::forward<A>(args)...);
  [[maybe_unused]] const std::size_t written = std::fwrite(line.data(), 1, line.size(), stderr);
}

/// Lets the reader of standard output see all that was printed. Throws std::system_error, as
/// fmt::print does, when it cannot be written.
inline void flush_output() {
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
}

}  // namespace headwise::cli
