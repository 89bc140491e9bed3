#include "headwise/data/text.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>

#include "headwise/core/error.hpp"
#include "headwise/core/file.hpp"

namespace headwise {
namespace {

/// One character of UTF-8 (RFC 3629): its code point and how many bytes it takes.
struct Character {
  char32_t code = 0;
  std::size_t bytes = 1;
};

/// Nothing when the bytes at `at` are not UTF-8: truncated, overlong, a surrogate or above
/// U+10FFFF.
std::optional<Character> character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return Character{lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || at + bytes > text.size()) return std::nullopt;
  char32_t code = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return std::nullopt;
    code = code << 6 | (byte(at + i) & 0x3F);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  if (overlong || (code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF) return std::nullopt;
  return Character{code, bytes};
}

/// Calls f(code point, its bytes) for every character.
template <class F>
void for_each_character(std::string_view text, F f) {
  for (std::size_t at = 0; at < text.size();) {
    const std::optional<Character> c = character_at(text, at);
    require<DataError>(c.has_value(), "text: byte {} (0x{:02X}) is not UTF-8", at,
                       at < text.size() ? static_cast<unsigned char>(text[at]) : 0);
    f(c->code, text.substr(at, c->bytes));
    at += c->bytes;
  }
}

void require_window(Index tokens, Index context) {
  require<DataError>(tokens > context,
                     "text: {} tokens, need at least {} (--context {} and the token after)", tokens,
                     context + 1, context);
}

std::string read_standard_input() {
  std::string bytes;
  for (char buffer[1 << 16];;) {
    const std::size_t n = std::fread(buffer, 1, sizeof buffer, stdin);
    bytes.append(buffer, n);
    require<DataError>(std::ferror(stdin) == 0, "standard input: cannot be read");
    if (n == 0) return bytes;
  }
}

}  // namespace

std::string read_text(const std::string& path) {
  const bool standard_input = path == "-";
  std::string bytes = standard_input ? read_standard_input() : read_file(path);
  const std::string where = standard_input ? "standard input" : path;
  require<DataError>(!bytes.empty(), "{}: is empty (0 bytes)", where);
  const auto starts = [&](std::string_view mark) { return bytes.starts_with(mark); };
  require<DataError>(!starts("\xFF\xFE") && !starts("\xFE\xFF"),
                     "{}: is UTF-16 (it begins with its byte-order mark); convert it to UTF-8",
                     where);
  if (starts("\xEF\xBB\xBF")) bytes.erase(0, 3);
  require<DataError>(!bytes.empty(), "{}: is empty but for a byte-order mark", where);
  return bytes;
}

CharTokenizer CharTokenizer::from_text(std::string_view text) {
  require<DataError>(!text.empty(), "tokenizer: the text is empty");
  std::set<char32_t> codes;
  std::unordered_map<char32_t, std::string> bytes;
  for_each_character(text, [&](char32_t code, std::string_view s) {
    if (codes.insert(code).second) bytes.emplace(code, s);
  });
  std::vector<std::string> tokens;
  for (const char32_t code : codes) tokens.push_back(bytes.at(code));
  return from_tokens(tokens);
}

CharTokenizer CharTokenizer::from_tokens(const std::vector<std::string>& tokens) {
  require<DataError>(!tokens.empty(), "tokenizer: no tokens");
  CharTokenizer t;
  for (const std::string& token : tokens) {
    const auto c = token.empty() ? std::nullopt : character_at(token, 0);
    require<DataError>(c.has_value() && c->bytes == token.size(),
                       "tokenizer: token {} ('{}') is not one character", t.tokens_.size(), token);
    require<DataError>(t.ids_.emplace(c->code, static_cast<Id>(t.tokens_.size())).second,
                       "tokenizer: token {} ('{}') stands there twice", t.tokens_.size(), token);
    t.tokens_.push_back(token);
  }
  return t;
}

std::vector<Id> CharTokenizer::encode(std::string_view text) const {
  std::vector<Id> ids;
  ids.reserve(text.size());
  for_each_character(text, [&](char32_t code, std::string_view s) {
    const auto found = ids_.find(code);
    require<DataError>(
        found != ids_.end(),
        "text: character '{}' (U+{:04X}) at index {} is not one of the {} characters "
        "of the training text",
        s, static_cast<std::uint32_t>(code), ids.size(), tokens_.size());
    ids.push_back(found->second);
  });
  return ids;
}

std::string CharTokenizer::decode(const std::vector<Id>& ids) const {
  std::string text;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    require(ids[i] >= 0 && ids[i] < vocab(), "decode: id {} at position {} is not in [0, {}]",
            ids[i], i, vocab() - 1);
    text += tokens_[static_cast<std::size_t>(ids[i])];
  }
  return text;
}

Split split(const std::vector<Id>& tokens, Index context) {
  const auto n = static_cast<Index>(tokens.size());
  require_window(n, context);
  const Index cut = n * 9 / 10;
  if (n - cut <= context || cut <= context) return {tokens, tokens, true};
  return {{tokens.begin(), tokens.begin() + cut}, {tokens.begin() + cut, tokens.end()}, false};
}

Batch random_batch(const std::vector<Id>& tokens, Index batch, Index context, Rng& rng) {
  const auto n = static_cast<Index>(tokens.size());
  require_window(n, context);
  std::vector<Id> inputs, targets;
  inputs.reserve(static_cast<std::size_t>(batch * context));
  targets.reserve(static_cast<std::size_t>(batch * context));
  for (Index b = 0; b < batch; ++b) {
    const auto start = tokens.begin() + rng.below(n - context);
    inputs.insert(inputs.end(), start, start + context);
    targets.insert(targets.end(), start + 1, start + 1 + context);
  }
  return {Ids({batch, context}, std::move(inputs)), Ids({batch, context}, std::move(targets))};
}

}  // namespace headwise
