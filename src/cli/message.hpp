// Standard error: notes, warnings, errors and progress, all by this one way.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>

namespace headwise::cli {

/// Writes to standard error. What cannot be written there (a full disk, a closed pipe) is dropped:
/// no message is worth the work that it speaks of.
template <class... A>
void print_message(fmt::format_string<A...> text, A&&... args) {
  const std::string line = fmt::format(text, std::forward<A>(args)...);
  [[maybe_unused]] const std::size_t written = std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace headwise::cli
