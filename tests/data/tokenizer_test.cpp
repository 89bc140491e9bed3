// Characters, bytes and words: how a text is cut, what is refused, and that nothing is lost.
#include "headwise/data/tokenizer.hpp"

#include <memory>
#include <numeric>

#include "headwise/core/error.hpp"
#include "headwise/core/random.hpp"
#include "headwise/data/text.hpp"
#include "support/catch.hpp"

using namespace headwise;

namespace {

using Tokens = std::vector<std::string>;
constexpr auto kCharacter = TokenizerKind::character;
constexpr auto kByte = TokenizerKind::byte;
constexpr auto kWord = TokenizerKind::word;

Tokenizer character_tokenizer(std::string_view text) { return Tokenizer::learn(kCharacter, text); }
Tokenizer words_of(std::string_view text, Index min_count = 1) {
  return Tokenizer::learn(kWord, text, min_count);
}

/// The tokens of a text as texts.
Tokens cut(const Tokenizer& t, std::string_view text) {
  Tokens all;
  for (const Id id : t.encode(text)) all.push_back(t.decode({id}));
  return all;
}

/// A text of `n` characters, drawn from `from`.
std::string random_text(const Tokens& from, Index n, Rng& rng) {
  std::string text;
  for (Index i = 0; i < n; ++i)
    text += from[static_cast<std::size_t>(rng.below(static_cast<Index>(from.size())))];
  return text;
}

void check_round_trip(const Tokenizer& t, std::string_view text) {
  const std::vector<Id> ids = t.encode(text);
  const bool same = t.decode(ids) == text;  // not the texts: they may be long, or no UTF-8
  CHECK(same);
  CHECK(t.bytes(ids) == static_cast<Index>(text.size()));
}

/// Characters of one to four bytes, out of order and repeated.
const std::string kMixed = "z\u00FC\n\u20AC\U0001F600a\u00FC\uFEFFz";

void check_not_utf8(std::string_view text, std::size_t offset, int value) {
  const std::string message = fmt::format("text: byte {} (0x{:02X}) is not UTF-8", offset, value);
  for (const TokenizerKind kind : {kCharacter, kWord}) {
    CHECK_THROWS_WITH(Tokenizer::learn(kind, text), message);
    CHECK_THROWS_AS(Tokenizer::learn(kind, text), DataError);
    CHECK_THROWS_WITH(Tokenizer::learn(kind, "its").encode(text), message);
  }
  check_round_trip(Tokenizer::learn(kByte, text), text);
}

}  // namespace

TEST_CASE("characters are numbered by code point", "[data][tokenizer]") {
  const auto t = character_tokenizer(kMixed);
  CHECK(t.tokens() == Tokens{"\n", "a", "z", "\u00FC", "\u20AC", "\uFEFF", "\U0001F600"});
  CHECK(t.vocab() == 7);
  CHECK(t.encode("a\u20ACz\n") == std::vector<Id>{1, 4, 2, 0});
}

TEST_CASE("a byte is its own id", "[data][tokenizer]") {
  const auto t = Tokenizer::learn(kByte, "a");
  CHECK(t.vocab() == 256);
  std::string all(256, '\0');
  std::iota(all.begin(), all.end(), '\0');
  std::vector<Id> ids(256);
  std::iota(ids.begin(), ids.end(), 0);
  CHECK(t.encode(all) == ids);
  CHECK(t.decode(ids) == all);
  CHECK(t.encode("\u00FC") == std::vector<Id>{0xC3, 0xBC});
}

TEST_CASE("decoding what was encoded gives the text back", "[data][tokenizer]") {
  const std::string zero("a\0b", 3);
  for (const std::string& text : {kMixed, zero, std::string(builtin_text())}) {
    for (const TokenizerKind kind : {kCharacter, kByte, kWord}) {
      const auto t = Tokenizer::learn(kind, text);
      check_round_trip(t, text);
      CHECK(t.encode("").empty());
    }
  }
}

TEST_CASE("random bytes come back from a byte tokenizer", "[data][tokenizer]") {
  Rng rng(1);
  const auto t = Tokenizer::learn(kByte, "x");
  const Tokens values = t.tokens();
  for (int i = 0; i < 20; ++i) check_round_trip(t, random_text(values, 1000, rng));
}

TEST_CASE("random texts come back whatever they were learned from", "[data][tokenizer]") {
  const Tokens some = {"a",  "B",  "z",      "7",      "0",      " ",      "\t",         "\n",
                       "\r", "'",  "_",      "\u00FC", "\u0301", "\u00A0", "\u2019",     "\u200B",
                       ".",  "\v", "\u4E2D", "\u3002", "\u3000", "\uFEFF", "\U0001F600", "\u0085"};
  Rng rng(1);
  for (int i = 0; i < 50; ++i) {
    const std::string known = random_text(some, 400, rng);
    const std::string other = random_text(some, 400, rng);  // the same characters, other words
    check_round_trip(words_of(known + other, 1 + i % 3), known + other);
    Tokens all = some;
    all.insert(all.end(), {"ab", "77", " \t", "z\u00FC"});
    check_round_trip(Tokenizer::from_tokens(kWord, all), known);
    check_round_trip(character_tokenizer(known + other), other);
  }
}

TEST_CASE("the first and last character of each length are known", "[data][tokenizer]") {
  std::string edges = "\x7F\u0080\u07FF\u0800\uD7FF\uE000\uFFFF\U00010000\U0010FFFF";
  edges.push_back('\0');
  const auto t = character_tokenizer(edges);
  CHECK(t.vocab() == 10);
  CHECK(t.encode(edges) == std::vector<Id>{1, 2, 3, 4, 5, 6, 7, 8, 9, 0});
}

TEST_CASE("line ends are kept as they are (case 55)", "[data][tokenizer]") {
  const auto check = [](std::string_view text, const Tokens& tokens, std::size_t length) {
    for (const TokenizerKind kind : {kCharacter, kWord}) {
      const auto t = Tokenizer::learn(kind, text);
      CHECK(t.tokens() == tokens);
      CHECK(t.encode(text).size() == length);
      check_round_trip(t, text);
    }
    CHECK(Tokenizer::learn(kByte, text).encode(text).size() == length);
  };
  check("a\r\nb\r\n", {"\n", "\r", "a", "b"}, 6);
  check("a\rb\r", {"\r", "a", "b"}, 4);
  check("a\nb\n", {"\n", "a", "b"}, 4);
}

TEST_CASE("a text is cut into runs of letters, digits and blanks, and the rest",
          "[data][tokenizer]") {
  const auto check = [](const Tokens& pieces) {
    const std::string text = std::accumulate(pieces.begin(), pieces.end(), std::string());
    CAPTURE(text);
    CHECK(cut(words_of(text), text) == pieces);
  };
  check({"Isn", "'", "t", " ", "it", " ", "42", "?"});
  check({"don", "\u2019", "t", " ", "stop", "\u2026"});  // typographic marks
  check({"Stra\u00DFe", " ", "na\u00EFve", " ", "\u0416\u0443\u043A"});
  check({"cafe\u0301s", "!"});  // a combining accent
  check({"x", "12", "y", "3", ".", "14", "e", "-", "5"});
  check({"snake", "_", "case", ":", ":", "Camel"});
  check({"a", "  ", "b", " \t ", "c", "\t\t", "d"});
  check({"a", "   ", "\n", "\n", "    ", "b", "\r", "\n", "c", "\v", "\f"});  // never over a line
  check({"\u4E2D\u6587", "\u3001", "\u65E5\u672C", "\u3002", "\u3000"});
  check({"a", "\u00A0\u202F", "b", " \u3000", "c", "\u2028", "\u2028", "\u0085"});
  check({"\U0001F600\U0001F600", "!", "!", "!"});
}

TEST_CASE("words stand after the characters, the most frequent first", "[data][tokenizer]") {
  const std::string text = "to be or not to be, that is";
  CHECK(words_of(text, 2).tokens() ==
        Tokens{" ", ",", "a", "b", "e", "h", "i", "n", "o", "r", "s", "t", "be", "to"});
  CHECK(words_of("bb aa bb  aa  cc bb").tokens() ==  // ties by their bytes
        Tokens{" ", "a", "b", "c", "bb", "  ", "aa", "cc"});
  CHECK(words_of("zz \u00FC\u00FC zz \u00FC\u00FC\U0001F600", 2).tokens() ==
        Tokens{" ", "z", "\u00FC", "\U0001F600", "zz"});
  CHECK(words_of("a a a b b").tokens() == Tokens{" ", "a", "b"});  // a word of one is a character
}

TEST_CASE("a word that is too rare is spelled", "[data][tokenizer]") {
  const auto t = words_of("the cat sat, the rat sat", 2);
  CHECK(t.vocab() == 9 + 2);
  CHECK(cut(t, "the cat sat") == Tokens{"the", " ", "c", "a", "t", " ", "sat"});
  CHECK(cut(t, "these") == Tokens{"t", "h", "e", "s", "e"});  // no token inside a piece
  CHECK(words_of("the cat sat, the rat sat", 3).vocab() == 9);
  CHECK(words_of("the cat sat, the rat sat", 1).vocab() == 9 + 4);
}

TEST_CASE("learning twice gives the same words", "[data][tokenizer]") {
  const auto a = words_of(builtin_text(), 2), b = words_of(std::string(builtin_text()), 2);
  CHECK(a.tokens() == b.tokens());
  CHECK(a.vocab() > 200);
  CHECK(a.encode(builtin_text()).size() * 2 < builtin_text().size());
}

TEST_CASE("bytes that are not UTF-8 are refused by offset and value, but by bytes (case 57)",
          "[data][tokenizer][errors]") {
  check_not_utf8("it\x92s", 2, 0x92);              // a Windows-1252 quote
  check_not_utf8("its\xC3", 3, 0xC3);              // cut off at the end
  check_not_utf8("its\xE2\x82", 3, 0xE2);          // cut off, two of three
  check_not_utf8("its\xF0\x9F\x98", 3, 0xF0);      // cut off, three of four
  check_not_utf8("s\xC3s", 1, 0xC3);               // cut off in the middle
  check_not_utf8("\xC0\x80", 0, 0xC0);             // overlong
  check_not_utf8("\xC1\xBF", 0, 0xC1);             // overlong
  check_not_utf8("s\xE0\x9F\xBF", 1, 0xE0);        // overlong
  check_not_utf8("s\xF0\x8F\xBF\xBF", 1, 0xF0);    // overlong
  check_not_utf8("its\xED\xA0\x80", 3, 0xED);      // a surrogate
  check_not_utf8("its\xED\xBF\xBF", 3, 0xED);      // the last surrogate
  check_not_utf8("its\xF4\x90\x80\x80", 3, 0xF4);  // above U+10FFFF
  check_not_utf8("its\xF5\x80\x80\x80", 3, 0xF5);
  check_not_utf8("its\xFF", 3, 0xFF);
}

TEST_CASE("a text without a character is no vocabulary", "[data][tokenizer][errors]") {
  for (const TokenizerKind kind : {kCharacter, kByte, kWord}) {
    CHECK_THROWS_WITH(Tokenizer::learn(kind, ""), "tokenizer: the text is empty");
    CHECK_THROWS_AS(Tokenizer::learn(kind, ""), DataError);
  }
}

TEST_CASE("a word is seen once or more", "[data][tokenizer][errors]") {
  CHECK_THROWS_WITH(words_of("a", 0), "min-count: must be >= 1, got 0");
  CHECK_THROWS_WITH(words_of("a", -3), "min-count: must be >= 1, got -3");
  CHECK_THROWS_AS(words_of("a", 0), UsageError);
}

TEST_CASE("a character that training never saw is refused by name and index (case 59)",
          "[data][tokenizer][errors]") {
  for (const TokenizerKind kind : {kCharacter, kWord}) {
    const auto t = Tokenizer::learn(kind, "abab abab");
    CHECK_THROWS_WITH(t.encode("ab\u00FC"),
                      "text: character '\u00FC' (U+00FC) at index 2 is not one of the 3 characters "
                      "of the training text");
    CHECK_THROWS_AS(t.encode("ab\u00FC"), DataError);
    const auto wide = Tokenizer::learn(kind, "a\u00FC");  // an index of characters, not of bytes
    CHECK_THROWS_WITH(wide.encode("\u00FC\u00FC\U0001F600"),
                      "text: character '\U0001F600' (U+1F600) at index 2 is not one of the 2 "
                      "characters of the training text");
  }
  CHECK(words_of("abab abab", 2).vocab() == 3 + 1);
}

TEST_CASE("another text keeps the vocabulary or is refused (case 61)",
          "[data][tokenizer][errors]") {
  const auto t = Tokenizer::from_tokens(kCharacter, character_tokenizer("abc").tokens());
  CHECK(t.encode("cab") == std::vector<Id>{2, 0, 1});
  CHECK_THROWS_WITH(t.encode("abcd"),
                    "text: character 'd' (U+0064) at index 3 is not one of the 3 characters of the "
                    "training text");
}

TEST_CASE("an id without a token is refused by id and place", "[data][tokenizer][errors]") {
  const auto t = character_tokenizer("ab");
  CHECK_THROWS_WITH(t.decode({0, 1, 2}), "decode: id 2 at position 2 is not in [0, 1]");
  CHECK_THROWS_WITH(t.decode({-1}), "decode: id -1 at position 0 is not in [0, 1]");
  CHECK_THROWS_WITH(Tokenizer::learn(kByte, "a").decode({256}),
                    "decode: id 256 at position 0 is not in [0, 255]");
}

TEST_CASE("saved tokens give the same tokenizer", "[data][tokenizer]") {
  const std::string text = kMixed + kMixed + " it is, it is";
  for (const TokenizerKind kind : {kCharacter, kWord}) {
    const auto t = Tokenizer::learn(kind, text);
    const auto again = Tokenizer::from_tokens(kind, t.tokens());
    CHECK(again.kind() == kind);
    CHECK(again.tokens() == t.tokens());
    CHECK(again.encode(text) == t.encode(text));
  }
  CHECK(Tokenizer::from_tokens(kCharacter, {"b", "a"}).encode("ab") == std::vector<Id>{1, 0});
  CHECK(Tokenizer::from_tokens(kByte, {}).vocab() == 256);
}

TEST_CASE("a copy of a tokenizer outlives it", "[data][tokenizer]") {
  auto original = std::make_unique<Tokenizer>(words_of("it is what it is", 2));
  const Tokenizer copy = *original;
  const std::vector<Id> ids = original->encode("it is");
  original.reset();
  CHECK(copy.encode("it is") == ids);
}

TEST_CASE("saved tokens that no text is cut into are refused", "[data][tokenizer][errors]") {
  const auto refused = [](TokenizerKind kind, const Tokens& tokens, const std::string& message) {
    CHECK_THROWS_WITH(Tokenizer::from_tokens(kind, tokens), message);
    CHECK_THROWS_AS(Tokenizer::from_tokens(kind, tokens), DataError);
  };
  refused(kCharacter, {}, "tokenizer: no tokens");
  refused(kCharacter, {"a", "bc"}, "tokenizer: token 1 ('bc') is not one character");
  refused(kCharacter, {"a", ""}, "tokenizer: token 1 ('') is not one character");
  refused(kCharacter, {"\xC3"}, "tokenizer: token 0 ('\\xc3') is not one character");
  refused(kCharacter, {"a", "b", "a"}, "tokenizer: token 2 ('a') stands there twice");
  refused(kWord, {}, "tokenizer: no tokens");
  refused(kWord, {"a", ""}, "tokenizer: token 1 ('') is not one character or word");
  refused(kWord, {"a", "is it"}, "tokenizer: token 1 ('is it') is not one character or word");
  refused(kWord, {"\n\n"}, "tokenizer: token 0 ('\\n\\n') is not one character or word");
  refused(kWord, {"a\xC3"}, "tokenizer: token 0 ('a\\xc3') is not one character or word");
  refused(kWord, {"is", "a", "is"}, "tokenizer: token 2 ('is') stands there twice");
  refused(kByte, {"a"}, "tokenizer: byte has no list of tokens, there are 1");
}
