// The text a run is about.
#pragma once

#include <string>

#include "headwise/data/text.hpp"

namespace headwise::cli {

/// The text at `path`; the built-in stories for no path.
inline std::string text_of(const std::string& path) {
  return path.empty() ? std::string(builtin_text()) : read_text(path);
}

}  // namespace headwise::cli
