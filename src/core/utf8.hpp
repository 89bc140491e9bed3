// UTF-8 (RFC 3629), one code point at a time.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include "headwise/core/shape.hpp"

namespace headwise {

/// A code point and the number of bytes that encode it.
struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 1;
};

/// The code point at byte `at`. Nothing when these bytes are not UTF-8 (truncated, overlong, a
/// surrogate, above U+10FFFF) or when the text ends before.
inline std::optional<CodePoint> code_point_at(std::string_view text, std::size_t at) {
  if (at >= text.size()) return std::nullopt;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return CodePoint{lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || at + bytes > text.size()) return std::nullopt;
  char32_t value = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return std::nullopt;
    value = value << 6 | (byte(at + i) & 0x3F);
  }
  const bool overlong = (bytes == 3 && value < 0x800) || (bytes == 4 && value < 0x10000);
  if (overlong || (value >= 0xD800 && value <= 0xDFFF) || value > 0x10FFFF) return std::nullopt;
  return CodePoint{value, bytes};
}

/// Whether these bytes are the beginning of a character, but not all of it.
inline bool begins_character(std::string_view bytes) {
  if (bytes.empty()) return false;
  const auto lead = static_cast<unsigned char>(bytes[0]);
  const std::size_t needed = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  return lead >= 0xC2 && lead <= 0xF4 && bytes.size() < needed &&
         std::all_of(bytes.begin() + 1, bytes.end(), [](char c) { return (c & 0xC0) == 0x80; });
}

/// Whether a terminal would obey this code point, or show nothing: control characters, marks of
/// direction, zero-width characters, byte-order marks.
constexpr bool is_invisible(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x61C || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x2069) || c == 0xFEFF;
}

/// Number of code points in a text that is UTF-8: of bytes other than 10xxxxxx.
inline Index characters_in(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

}  // namespace headwise
