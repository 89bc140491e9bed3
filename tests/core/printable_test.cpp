#include "headwise/core/printable.hpp"

#include "support/catch.hpp"

using namespace headwise;

TEST_CASE("printable text is one safe line") {
  CHECK(printable("plain text, ümläut, 漢字, 😀") == "plain text, ümläut, 漢字, 😀");
  CHECK(printable("a\nb\tc\rd") == "a\\nb\\tc\\rd");
  CHECK(printable("\x1b[31mred") == "\\x1b[31mred");
  CHECK(printable(std::string_view("\0x", 2)) == "\\x00x");
  CHECK(printable("back\\slash") == "back\\\\slash");
  CHECK(printable("\x7f\xc2\x9b") == "\\x7f\\u009b");  // C1's CSI is obeyed by some terminals
}

TEST_CASE("marks of direction and of no width are escaped") {
  CHECK(printable("a\u202eb\u200bc\ufeff") == "a\\u202eb\\u200bc\\ufeff");
}

TEST_CASE("bytes that are not UTF-8 are escaped") {
  CHECK(printable("a\xff"
                  "b") == "a\\xffb");
  CHECK(printable("\xe6\xbc") == "\\xe6\\xbc");           // cut short
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");           // overlong
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
}

TEST_CASE("printable text is cut between characters, with its size") {
  CHECK(printable(std::string(200, 'x')) == std::string(120, 'x') + "... (200 bytes)");
  CHECK(printable("漢字", 4) == "漢... (6 bytes)");
  CHECK(printable(std::string(5'000'000, '\n'), 10) == "\\n\\n\\n\\n\\n... (5000000 bytes)");
}
