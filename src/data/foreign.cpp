#include "data/foreign.hpp"

#include <fmt/format.h>

#include "core/utf8.hpp"

namespace headwise {
namespace {

using namespace std::string_view_literals;

struct Magic {
  std::size_t at;
  std::string_view bytes, format;
};

/// The longest of those that begin alike comes first.
constexpr Magic kMagic[] = {
    {0, "\xFF\xFE\0\0"sv, "UTF-32LE"},
    {0, "\0\0\xFE\xFF"sv, "UTF-32BE"},
    {0, "\xFF\xFE"sv, "UTF-16LE"},
    {0, "\xFE\xFF"sv, "UTF-16BE"},
    {0, "\x1F\x8B"sv, "gzip"},
    {0, "PK\x03\x04"sv, "zip"},
    {0, "\x28\xB5\x2F\xFD"sv, "zstd"},
    {0, "BZh"sv, "bzip2"},
    {0, "\xFD\x37zXZ\0"sv, "xz"},
    {0, "\x37\x7A\xBC\xAF\x27\x1C"sv, "7z"},
    {257, "ustar"sv, "tar"},
    {0, "%PDF-"sv, "PDF"},
    {0, "\x89PNG\r\n\x1A\n"sv, "PNG"},
    {0, "\xFF\xD8\xFF"sv, "JPEG"},
    {0,
     "\x7F"
     "ELF"sv,
     "ELF"},
    {0, "\x93NUMPY"sv, "NumPy's npy"},
    {0, "PAR1"sv, "Parquet"},
    {0, "SQLite format 3\0"sv, "SQLite"},
};

/// Whether it is UTF-8 without zero bytes; it may end within a character.
bool is_text(std::string_view start) {
  for (std::size_t at = 0; at < start.size();) {
    const auto c = code_point_at(start, at);
    if (!c) return begins_character(start.substr(at));
    if (c->value == 0) return false;
    at += c->bytes;
  }
  return true;
}

/// A header's length in 8 bytes, of which no sensible one fills more than 4, and JSON.
bool is_safetensors(std::string_view bytes) {
  return bytes.size() > 10 && bytes.substr(4, 4) == "\0\0\0\0"sv &&
         (bytes.substr(8, 2) == "{\"" || bytes.substr(8, 2) == "{}");
}

/// UTF-32: every four bytes are a code point other than 0, in a plane that has characters.
bool is_utf32(std::string_view bytes, bool little) {
  const std::size_t high = little ? 3 : 0, next = little ? 2 : 1;
  if (bytes.size() < 8) return false;
  for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    const auto plane = static_cast<unsigned char>(bytes[i + next]);
    if (bytes[i + high] != 0 || plane > 3) return false;
    if (plane == 0 && bytes[i + (little ? 1 : 2)] == 0 && bytes[i + (little ? 0 : 3)] == 0)
      return false;
  }
  return true;
}

/// UTF-16: an eighth of the high bytes is 0, and no low byte is; and there is a space or a line's
/// end, which texts with zeros between their parts seldom have just before one.
std::string_view utf16_of(std::string_view bytes) {
  std::size_t zeros[2] = {}, blanks[2] = {};  // at even and at odd bytes; beside such a zero
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != 0) continue;
    ++zeros[i % 2];
    const std::size_t low = i ^ 1;
    blanks[i % 2] += low < bytes.size() && (bytes[low] == ' ' || bytes[low] == '\n');
  }
  const auto enough = [&](std::size_t at) {
    return zeros[1 - at] == 0 && blanks[at] > 0 && zeros[at] * 16 >= bytes.size();
  };
  if (enough(1)) return "UTF-16LE without a byte-order mark";
  if (enough(0)) return "UTF-16BE without a byte-order mark";
  return "";
}

}  // namespace

std::string_view foreign_format(std::string_view bytes) {
  const std::string_view start = bytes.substr(0, 4096);
  if (is_text(start)) return "";
  for (const Magic& m : kMagic)
    if (bytes.size() >= m.at && bytes.substr(m.at).starts_with(m.bytes)) return m.format;
  if (is_safetensors(bytes)) return "safetensors";
  if (is_utf32(start, true)) return "UTF-32LE without a byte-order mark";
  if (is_utf32(start, false)) return "UTF-32BE without a byte-order mark";
  return utf16_of(start);
}

std::string foreign_hint(std::string_view bytes) {
  const std::string_view format = foreign_format(bytes);
  if (format.empty()) return "";
  return fmt::format("; it looks like {}{}", format,
                     format.starts_with("UTF") ? ": convert it to UTF-8" : "");
}

}  // namespace headwise
