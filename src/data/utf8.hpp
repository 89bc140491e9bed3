// What several need to know of UTF-8 (RFC 3629).
#pragma once

#include <algorithm>
#include <string_view>

#include "headwise/core/shape.hpp"

namespace headwise {

/// How many characters a text has that is UTF-8: the bytes that are not 10xxxxxx.
inline Index characters_in(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

}  // namespace headwise
