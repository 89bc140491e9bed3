// Files that are no UTF-8 text say what they look like.
#include "data/foreign.hpp"

#include "headwise/data/task.hpp"
#include "headwise/data/tokenizer.hpp"
#include "support/bytes.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace headwise;

namespace {

/// A text of code points below U+10000 in 2 or 4 bytes each.
std::string wide(const std::u16string& text, int bytes, bool little) {
  std::string out;
  for (const char16_t c : text)
    for (int i = 0; i < bytes; ++i) {
      const int place = little ? i : bytes - 1 - i;
      out += static_cast<char>(place < 2 ? c >> (8 * place) & 0xFF : 0);
    }
  return out;
}

const std::u16string kLatin = u"It is said.\nThen it is not.\n",
                     kCyrillic = u"\u041E\u043D\u0430 \u0438 \u043E\u043D.\n\u0414\u0430.\n";

std::string refusal(TokenizerKind kind, const std::string& text) {
  try {
    (void)Tokenizer::learn(kind, text);
    return "";
  } catch (const DataError& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("formats are known by their first bytes", "[data]") {
  using namespace std::string_literals;
  const auto format = [](const std::string& bytes) { return std::string(foreign_format(bytes)); };
  CHECK(format("\x1F\x8B\x08\0\0"s) == "gzip");
  CHECK(format("PK\x03\x04\x14\0"s) == "zip");
  CHECK(format("\x28\xB5\x2F\xFD\x04"s) == "zstd");
  CHECK(format("BZh91AY&SY\x9E\x30"s) == "bzip2");
  CHECK(format("\xFD\x37zXZ\0\0\x04"s) == "xz");
  CHECK(format("%PDF-1.5\n%\xD0\xD4\xC5\xD8\n"s) == "PDF");
  CHECK(format("\x89PNG\r\n\x1A\n\0\0"s) == "PNG");
  CHECK(format("\xFF\xD8\xFF\xE0\0\x10JFIF"s) == "JPEG");
  CHECK(format("\x7F"s + "ELF\x02\x01\x01\0"s) == "ELF");
  CHECK(format("\x40\0\0\0\0\0\0\0{\"a\":{"s) == "safetensors");
  std::string tar(512, '\0');
  tar.replace(0, 5, "a.txt").replace(257, 5, "ustar");
  CHECK(format(tar) == "tar");
}

TEST_CASE("UTF-16 and UTF-32 are known with and without a mark", "[data]") {
  for (const std::u16string& text : {kLatin, kCyrillic})
    for (const bool little : {true, false})
      for (const int bits : {16, 32}) {
        const std::string name = fmt::format("UTF-{}{}", bits, little ? "LE" : "BE");
        CHECK(foreign_format(wide(text, bits / 8, little)) == name + " without a byte-order mark");
        CHECK(foreign_format(wide(u"\uFEFF" + text, bits / 8, little)) == name);
      }
}

TEST_CASE("what is UTF-8 is a text, whatever it begins with", "[data]") {
  using namespace std::string_literals;
  for (const std::string& text :
       {"BZh is no word"s, "PK and more"s, "%PDF-1.4 is how it begins"s, ""s, "\xC3\xBC"s,
        std::string(4095, 'a') + "\xC3\xBC"s,  // cut within a character where one looks no further
        "one\0two\0three\0"s, "\0"s, "a\0"s})
    CHECK(foreign_format(text).empty());
  std::string records;  // a zero after a space, always at an odd byte
  for (int i = 0; i < 30; ++i) records += "one two three four \0"s;
  CHECK(foreign_format(records).empty());
  CHECK(foreign_format("it\x92s").empty());  // no text, but nothing known either
}

TEST_CASE("a tokenizer of characters or words names what a text looks like", "[data][errors]") {
  const std::string latin = wide(kLatin, 2, true), gzip = "\x1F\x8B\x08 and so on";
  for (const TokenizerKind kind : {TokenizerKind::character, TokenizerKind::word}) {
    CHECK(refusal(kind, latin) ==
          "text: is not UTF-8; it looks like UTF-16LE without a byte-order mark: convert it to "
          "UTF-8");
    CHECK(refusal(kind, "\xFE\xFF" + wide(kLatin, 2, false)) ==
          "text: is not UTF-8; it looks like UTF-16BE: convert it to UTF-8");
    CHECK(refusal(kind, gzip) == "text: is not UTF-8; it looks like gzip");
    CHECK(refusal(kind, "it\x92s") == "text: byte 2 (0x92) is not UTF-8");
  }
  CHECK(refusal(TokenizerKind::byte, latin).empty());
  CHECK(refusal(TokenizerKind::byte, gzip).empty());
  const Tokenizer t = Tokenizer::learn(TokenizerKind::character, "It is said, not gone. Then\n");
  CHECK_THROWS_WITH(
      t.encode(latin),
      "text: character '\\x00' (U+0000) at index 1 is not one of the 16 characters of "
      "the training text; it looks like UTF-16LE without a byte-order mark: convert "
      "it to UTF-8");
  CHECK_THROWS_WITH(
      t.encode(gzip),
      "text: character '\\x1f' (U+001F) at index 0 is not one of the 16 characters of "
      "the training text; it looks like gzip");
}

TEST_CASE("a task's file names what it looks like", "[data][task][errors]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "pairs.tsv";
  test::write_bytes(path, wide(u"1\ta\n2\tb\n", 2, true));
  CHECK_THROWS_WITH(make_task(path),
                    path +
                        ": is not UTF-8; it looks like UTF-16LE without a byte-order mark: "
                        "convert it to UTF-8");
}
