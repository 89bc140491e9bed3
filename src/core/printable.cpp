#include "headwise/core/printable.hpp"

#include <fmt/format.h>

#include "core/utf8.hpp"

namespace headwise {
namespace {

std::string escaped(char32_t c) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    default:
      break;
  }
  const auto number = static_cast<std::uint32_t>(c);
  return c < 0x80 ? fmt::format("\\x{:02x}", number) : fmt::format("\\u{:04x}", number);
}

}  // namespace

std::string printable(std::string_view text, std::size_t most) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto c = code_point_at(text, at);
    const std::size_t bytes = c ? c->bytes : 1;
    std::string piece;
    if (!c)
      piece = fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
    else if (c->value == '\\')
      piece = "\\\\";
    else if (is_invisible(c->value))
      piece = escaped(c->value);
    else
      piece = text.substr(at, bytes);
    if (out.size() + piece.size() > most) return out + fmt::format("... ({} bytes)", text.size());
    out += piece;
    at += bytes;
  }
  return out;
}

}  // namespace headwise
