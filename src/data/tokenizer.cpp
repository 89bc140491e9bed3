#include "headwise/data/tokenizer.hpp"

#include <algorithm>
#include <set>

#include "core/utf8.hpp"
#include "data/foreign.hpp"
#include "headwise/core/error.hpp"
#include "headwise/core/printable.hpp"

namespace headwise {
namespace {

bool is_in(char32_t c, char32_t first, char32_t last) { return c >= first && c <= last; }

/// What a character may form a piece with: its like, but for what stands alone.
enum class Class { letter, digit, blank, alone };

Class class_of(char32_t c) {
  if (is_in(c, 'a', 'z') || is_in(c, 'A', 'Z')) return Class::letter;
  if (is_in(c, '0', '9')) return Class::digit;
  if (c == ' ' || c == '\t') return Class::blank;
  if (c < 0x80 || c == 0x85) return Class::alone;  // U+0085, U+2028 and U+2029 end lines
  if (c == 0xA0 || c == 0x1680 || is_in(c, 0x2000, 0x200A) || c == 0x202F || c == 0x205F ||
      c == 0x3000)
    return Class::blank;
  const bool ordinal = c == 0xAA || c == 0xB5 || c == 0xBA;  // letters among Latin-1's marks
  if ((is_in(c, 0xA1, 0xBF) && !ordinal) || c == 0xD7 || c == 0xF7) return Class::alone;
  if (is_in(c, 0x2000, 0x206F) || is_in(c, 0x3000, 0x303F)) return Class::alone;
  return Class::letter;
}

/// How many bytes the piece at `at` takes; 0 when there is none, since no UTF-8 begins there.
std::size_t piece_at(TokenizerKind kind, std::string_view text, std::size_t at) {
  if (kind == TokenizerKind::byte) return at < text.size() ? 1 : 0;
  auto c = code_point_at(text, at);
  if (!c.has_value()) return 0;
  const Class like = class_of(c->value);
  if (kind == TokenizerKind::character || like == Class::alone) return c->bytes;
  std::size_t end = at;
  do {
    end += c->bytes;
    c = code_point_at(text, end);
  } while (c.has_value() && class_of(c->value) == like);
  return end - at;
}

/// Calls f(its bytes) for every piece.
template <class F>
void for_each_piece(TokenizerKind kind, std::string_view text, F f) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = piece_at(kind, text, at);
    if (bytes == 0)  // the hint is not looked for at every piece
      throw DataError(fmt::format("text: byte {} (0x{:02X}) is not UTF-8{}", at,
                                  static_cast<unsigned char>(text[at]), foreign_hint(text)));
    f(text.substr(at, bytes));
    at += bytes;
  }
}

std::vector<std::string> byte_values() {
  std::vector<std::string> all;
  for (int i = 0; i < 256; ++i) all.emplace_back(1, static_cast<char>(i));
  return all;
}

}  // namespace

void check_min_count(Index min_count) {
  require<ParameterError>(min_count >= 1, "min-count: must be >= 1, got {}", min_count);
}

Tokenizer Tokenizer::learn(TokenizerKind kind, std::string_view text, Index min_count) {
  check_min_count(min_count);
  require<DataError>(!text.empty(), "tokenizer: the text is empty");
  if (kind == TokenizerKind::byte) return from_tokens(kind, {});
  // UTF-16 and UTF-32 of ASCII are valid UTF-8 with many zeros.
  require<DataError>(foreign_format(text).empty(), "text: is not UTF-8{}", foreign_hint(text));

  std::unordered_map<std::string_view, Index> counts;
  for_each_piece(kind, text, [&](std::string_view piece) { ++counts[piece]; });
  std::set<std::string_view> characters;  // the order of bytes is that of code points
  std::vector<std::pair<Index, std::string_view>> words;
  for (const auto& [piece, count] : counts) {
    for_each_piece(TokenizerKind::character, piece,
                   [&](std::string_view c) { characters.insert(c); });
    if (count >= min_count && characters_in(piece) > 1) words.emplace_back(-count, piece);
  }
  std::sort(words.begin(), words.end());

  std::vector<std::string> tokens(characters.begin(), characters.end());
  for (const auto& [count, word] : words) tokens.emplace_back(word);
  return from_tokens(kind, tokens);
}

Tokenizer Tokenizer::from_tokens(TokenizerKind kind, const std::vector<std::string>& tokens) {
  const bool bytes = kind == TokenizerKind::byte;
  require<DataError>(!bytes || tokens.empty(),
                     "tokenizer: byte has no list of tokens, there are {}", tokens.size());
  require<DataError>(bytes || !tokens.empty(), "tokenizer: no tokens");
  Tokenizer t(kind);
  t.tokens_ = bytes ? byte_values() : tokens;
  t.ids_.reserve(t.tokens_.size());
  for (std::size_t i = 0; i < t.tokens_.size(); ++i) {
    const std::string& token = t.tokens_[i];
    require<DataError>(!token.empty() && piece_at(kind, token, 0) == token.size(),
                       "tokenizer: token {} ('{}') is not one character{}", i, printable(token),
                       kind == TokenizerKind::word ? " or word" : "");
    require<DataError>(t.ids_.emplace(token, static_cast<Id>(i)).second,
                       "tokenizer: token {} ('{}') stands there twice", i, printable(token));
    if (token.size() == 1) t.single_[static_cast<unsigned char>(token[0])] = static_cast<Id>(i);
  }
  return t;
}

Id Tokenizer::find(std::string_view piece) const {
  if (piece.size() == 1) return single_[static_cast<unsigned char>(piece[0])];
  const auto found = ids_.find(piece);
  return found == ids_.end() ? kNone : found->second;
}

template <class List>
void Tokenizer::encode_into(std::string_view text, List& ids) const {
  const auto add = [&](std::string_view piece) {
    const Id id = find(piece);
    if (id != kNone) ids.push_back(id);
    return id != kNone;
  };
  const auto known_characters = [&] {
    return std::count_if(tokens_.begin(), tokens_.end(),
                         [](const std::string& t) { return characters_in(t) == 1; });
  };
  for_each_piece(kind_, text, [&](std::string_view piece) {
    if (add(piece)) return;
    for_each_piece(TokenizerKind::character, piece, [&](std::string_view c) {
      if (add(c)) return;
      throw DataError(fmt::format(
          "text: character '{}' (U+{:04X}) at index {} is not one of the {} characters of the "
          "training text{}",
          printable(c), static_cast<std::uint32_t>(code_point_at(c, 0)->value),
          characters_in({text.data(), c.data()}), known_characters(), foreign_hint(text)));
    });
  });
}

std::vector<Id> Tokenizer::encode(std::string_view text) const {
  std::vector<Id> ids;
  ids.reserve(text.size());
  encode_into(text, ids);
  return ids;
}

PackedIds Tokenizer::encode_packed(std::string_view text) const {
  PackedIds ids(vocab(), text.size());
  encode_into(text, ids);
  return ids;
}

const std::string& Tokenizer::token(std::span<const Id> ids, std::size_t i) const {
  require(ids[i] >= 0 && ids[i] < vocab(), "decode: id {} at position {} is not in [0, {}]", ids[i],
          i, vocab() - 1);
  return tokens_[static_cast<std::size_t>(ids[i])];
}

std::string Tokenizer::decode(const std::vector<Id>& ids) const {
  std::string text;
  text.reserve(static_cast<std::size_t>(bytes(ids)));
  for (std::size_t i = 0; i < ids.size(); ++i) text += token(ids, i);
  return text;
}

Index Tokenizer::packed_bytes(const PackedIds& ids) const {
  std::size_t n = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Id id = ids[i];
    n += token({&id, 1}, 0).size();
  }
  return static_cast<Index>(n);
}

Index Tokenizer::bytes(std::span<const Id> ids) const {
  std::size_t n = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) n += token(ids, i).size();
  return static_cast<Index>(n);
}

}  // namespace headwise
