#include "cli/text_stream.hpp"

#include <unistd.h>

#include <utility>

#include "core/utf8.hpp"
#include "headwise/core/printable.hpp"

namespace headwise::cli {

bool writes_to_terminal() { return ::isatty(STDOUT_FILENO) == 1; }

std::string TextStream::take(std::string_view bytes) {
  waiting_ += bytes;
  const std::string_view text = waiting_;
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto c = code_point_at(text, at);
    if (!c && begins_character(text.substr(at))) break;
    const std::string_view piece = text.substr(at, c ? c->bytes : 1);
    const bool plain = c && (!is_invisible(c->value) || c->value == '\n' || c->value == '\t');
    out += terminal_ && !plain ? printable(piece) : std::string(piece);
    at += piece.size();
  }
  waiting_.erase(0, at);
  return out;
}

std::string TextStream::end() { return std::exchange(waiting_, "").empty() ? "" : "\xEF\xBF\xBD"; }

std::string shown(std::string_view text) {
  TextStream stream;
  std::string out = stream.take(text);
  return out + stream.end();
}

}  // namespace headwise::cli
