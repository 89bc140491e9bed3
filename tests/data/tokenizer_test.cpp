#include <algorithm>

#include "headwise/core/error.hpp"
#include "headwise/data/text.hpp"
#include "support/catch.hpp"

using namespace headwise;

namespace {

using Tokens = std::vector<std::string>;

/// Characters of one to four bytes, out of order and repeated.
const std::string kMixed = "z\u00FC\n\u20AC\U0001F600a\u00FC\uFEFFz";

void check_not_utf8(std::string_view text, std::size_t offset, int value) {
  const std::string message = fmt::format("text: byte {} (0x{:02X}) is not UTF-8", offset, value);
  CHECK_THROWS_WITH(CharTokenizer::from_text(text), message);
  CHECK_THROWS_AS(CharTokenizer::from_text(text), DataError);
  CHECK_THROWS_WITH(CharTokenizer::from_text("its").encode(text), message);
}

}  // namespace

TEST_CASE("characters are numbered by code point", "[data][tokenizer]") {
  const auto t = CharTokenizer::from_text(kMixed);
  CHECK(t.tokens() == Tokens{"\n", "a", "z", "\u00FC", "\u20AC", "\uFEFF", "\U0001F600"});
  CHECK(t.vocab() == 7);
  CHECK(t.encode("a\u20ACz\n") == std::vector<Id>{1, 4, 2, 0});
}

TEST_CASE("decoding what was encoded gives the text back", "[data][tokenizer]") {
  const std::string zero("a\0b", 3);
  for (const std::string& text : {kMixed, zero, std::string(builtin_text())}) {
    const auto t = CharTokenizer::from_text(text);
    CHECK(t.decode(t.encode(text)) == text);
  }
  CHECK(CharTokenizer::from_text("a").encode("").empty());
}

TEST_CASE("the first and last character of each length are known", "[data][tokenizer]") {
  std::string edges = "\x7F\u0080\u07FF\u0800\uD7FF\uE000\uFFFF\U00010000\U0010FFFF";
  edges.push_back('\0');
  const auto t = CharTokenizer::from_text(edges);
  CHECK(t.vocab() == 10);
  CHECK(t.encode(edges) == std::vector<Id>{1, 2, 3, 4, 5, 6, 7, 8, 9, 0});
}

TEST_CASE("line ends are kept as they are", "[data][tokenizer]") {
  const auto check = [](std::string_view text, const Tokens& tokens, std::size_t length) {
    const auto t = CharTokenizer::from_text(text);
    CHECK(t.tokens() == tokens);
    CHECK(t.encode(text).size() == length);
    CHECK(t.decode(t.encode(text)) == text);
  };
  check("a\r\nb\r\n", {"\n", "\r", "a", "b"}, 6);
  check("a\rb\r", {"\r", "a", "b"}, 4);
  check("a\nb\n", {"\n", "a", "b"}, 4);
}

TEST_CASE("bytes that are not UTF-8 are refused by offset and value", "[data][tokenizer][errors]") {
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
  CHECK_THROWS_WITH(CharTokenizer::from_text(""), "tokenizer: the text is empty");
  CHECK_THROWS_AS(CharTokenizer::from_text(""), DataError);
}

TEST_CASE("a character that training never saw is refused by name and index",
          "[data][tokenizer][errors]") {
  const auto t = CharTokenizer::from_text("abab");
  CHECK_THROWS_WITH(t.encode("ab\u00FC"),
                    "text: character '\u00FC' (U+00FC) at index 2 is not one of the 2 characters "
                    "of the training text");
  CHECK_THROWS_AS(t.encode("ab\u00FC"), DataError);
  const auto wide = CharTokenizer::from_text("a\u00FC");  // an index of characters, not of bytes
  CHECK_THROWS_WITH(wide.encode("\u00FC\u00FC\U0001F600"),
                    "text: character '\U0001F600' (U+1F600) at index 2 is not one of the 2 "
                    "characters of the training text");
}

TEST_CASE("an id without a token is refused by id and place", "[data][tokenizer][errors]") {
  const auto t = CharTokenizer::from_text("ab");
  CHECK_THROWS_WITH(t.decode({0, 1, 2}), "decode: id 2 at position 2 is not in [0, 1]");
  CHECK_THROWS_WITH(t.decode({-1}), "decode: id -1 at position 0 is not in [0, 1]");
}

TEST_CASE("saved tokens give the same tokenizer", "[data][tokenizer]") {
  const auto t = CharTokenizer::from_text(kMixed);
  const auto again = CharTokenizer::from_tokens(t.tokens());
  CHECK(again.tokens() == t.tokens());
  CHECK(again.encode(kMixed) == t.encode(kMixed));
  CHECK(CharTokenizer::from_tokens({"b", "a"}).encode("ab") == std::vector<Id>{1, 0});
}

TEST_CASE("saved tokens that are no characters are refused", "[data][tokenizer][errors]") {
  const auto refused = [](const Tokens& tokens, const std::string& message) {
    CHECK_THROWS_WITH(CharTokenizer::from_tokens(tokens), message);
    CHECK_THROWS_AS(CharTokenizer::from_tokens(tokens), DataError);
  };
  refused({}, "tokenizer: no tokens");
  refused({"a", "bc"}, "tokenizer: token 1 ('bc') is not one character");
  refused({"a", ""}, "tokenizer: token 1 ('') is not one character");
  refused({"\xC3"}, "tokenizer: token 0 ('\xC3') is not one character");
  refused({"a", "b", "a"}, "tokenizer: token 2 ('a') stands there twice");
}
