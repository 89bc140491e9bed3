// Text to tokens and back: characters, bytes, or words.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "headwise/core/ids.hpp"
#include "headwise/data/packed_ids.hpp"

namespace headwise {

/// What a token is.
///   character  a code point of the text
///   byte       any of the 256 values; the text need not be UTF-8
///   word       a piece that is seen often enough, or a character
enum class TokenizerKind { character, byte, word };
constexpr std::array<std::string_view, 3> names_of(TokenizerKind) {
  return {"char", "byte", "word"};
}

/// Throws UsageError unless it is 1 or more.
void check_min_count(Index min_count);

/// A vocabulary, and a text cut into it; nothing is lost: decode(encode(x)) == x.
///
/// The pieces that may be words are runs of letters, runs of digits, runs of blanks, and every
/// other character alone: marks and line ends, so that no piece goes over a line's end. It depends
/// on no locale: letters are a-z, A-Z and all from U+0080 on that is neither white space nor in the
/// blocks of punctuation, U+2000 to U+206F and U+3000 to U+303F, nor a mark of Latin-1 («, ¿, ×);
/// digits are 0-9; blanks are the
/// space, the tab and Unicode's spaces. "Isn't it 42?" is Isn|'|t| |it| |42|?.
class Tokenizer {
 public:
  /// Learns the vocabulary of a text: its characters, by code point; then, for words, the longer
  /// pieces that it has at least `min_count` times, the most frequent first. For bytes the
  /// vocabulary is always the 256 values, each its own id. Throws DataError when the text is empty
  /// or, but for bytes, is not UTF-8, with the byte's offset and value.
  static Tokenizer learn(TokenizerKind kind, std::string_view text, Index min_count = 2);
  /// The tokens of tokenizer.json, numbered as they stand; none for bytes. Throws DataError, naming
  /// the token, for one that is there twice or that no text is cut into.
  static Tokenizer from_tokens(TokenizerKind kind, const std::vector<std::string>& tokens);

  /// A piece that is no token becomes its characters. Throws DataError naming the character and its
  /// index when it was not in the training text.
  [[nodiscard]] std::vector<Id> encode(std::string_view text) const;
  /// The same for texts that are large: in a quarter of the memory where tokens are characters.
  [[nodiscard]] PackedIds encode_packed(std::string_view text) const;
  /// The tokens' bytes, one after the other. Throws ShapeError for an id outside the vocabulary.
  [[nodiscard]] std::string decode(const std::vector<Id>& ids) const;
  /// How many bytes decode() would give.
  [[nodiscard]] Index bytes(std::span<const Id> ids) const;
  [[nodiscard]] Index packed_bytes(const PackedIds& ids) const;

  [[nodiscard]] TokenizerKind kind() const { return kind_; }
  [[nodiscard]] Index vocab() const { return static_cast<Index>(tokens_.size()); }
  /// Each token's bytes, by id.
  [[nodiscard]] const std::vector<std::string>& tokens() const { return tokens_; }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;  // looked up by a view of the text: no copy for each piece
  };

  explicit Tokenizer(TokenizerKind kind) : kind_(kind) { single_.fill(kNone); }
  [[nodiscard]] Id find(std::string_view piece) const;
  template <class List>
  void encode_into(std::string_view text, List& ids) const;
  [[nodiscard]] const std::string& token(std::span<const Id> ids, std::size_t i) const;

  static constexpr Id kNone = -1;

  TokenizerKind kind_;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, Id, Hash, std::equal_to<>> ids_;
  std::array<Id, 256> single_{};  // the same for tokens of one byte, most of a text
};

}  // namespace headwise
