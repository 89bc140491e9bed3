// Reading text files, the built-in corpus, and what is refused.
#include "headwise/data/text.hpp"

#include <filesystem>

#include "headwise/core/file.hpp"
#include "headwise/data/tokenizer.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace headwise;
using test::message_of;
using test::TemporaryFolder;

namespace {

const std::string kDatasets = HEADWISE_GOLDEN "/../../datasets/";

/// What read_text gives for a file of these bytes, or says about it.
std::string read_of(std::string_view bytes) {
  const TemporaryFolder folder;
  replace_file(folder / "text.txt", bytes);
  return read_text(folder / "text.txt");
}
std::string text_refusal(std::string_view bytes) {
  const TemporaryFolder folder;
  const std::string path = folder / "text.txt";
  replace_file(path, bytes);
  const std::string message = message_of<DataError>([&] { read_text(path); });
  REQUIRE(message.starts_with(path + ": "));
  return message.substr(path.size() + 2);
}

/// 37978 as "37,978".
std::string with_commas(std::size_t n) {
  std::string digits = fmt::to_string(n);
  for (auto at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

}  // namespace

TEST_CASE("text is read byte for byte", "[data]") {
  const std::string bytes("a\r\nb\rc\n\0d\xFF", 10);
  CHECK(read_of(bytes) == bytes);
  CHECK(read_of("\n") == "\n");
}

TEST_CASE("a byte-order mark is skipped at the start only", "[data]") {
  CHECK(read_of("\xEF\xBB\xBF"
                "ab") == "ab");
  CHECK(Tokenizer::learn(TokenizerKind::character, read_of("\xEF\xBB\xBF"
                                                           "ab"))
            .vocab() == 2);
  CHECK(read_of("a\xEF\xBB\xBF"
                "b") ==
        "a\xEF\xBB\xBF"
        "b");
  CHECK(read_of("\xEF\xBB\xBF\xEF\xBB\xBF") == "\xEF\xBB\xBF");
}

TEST_CASE("UTF-16 is refused with a way out", "[data][errors]") {
  const std::string text = "is UTF-16 (it begins with its byte-order mark); convert it to UTF-8";
  CHECK(text_refusal(std::string("\xFF\xFE"
                                 "a\0",
                                 4)) == text);
  CHECK(text_refusal(std::string("\xFE\xFF\0a", 4)) == text);
}

TEST_CASE("text that is not there is refused by path and each for its own reason",
          "[data][errors]") {
  CHECK(text_refusal("") == "is empty (0 bytes)");
  CHECK(text_refusal("\xEF\xBB\xBF") == "is empty but for a byte-order mark");
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(read_text(folder / "no.txt"), folder / "no.txt" + ": no such file");
  CHECK_THROWS_WITH(read_text(folder.path()), folder.path() + ": is a folder, not a file");
  CHECK_THROWS_AS(read_text(folder.path()), DataError);
  if (std::filesystem::exists("/proc/self/mem"))  // opens, and cannot be read at byte 0
    CHECK(message_of<DataError>([] {
            read_text("/proc/self/mem");
          }).starts_with("/proc/self/mem: cannot be read: "));
}

TEST_CASE("the built-in text is the dataset's file byte for byte", "[data]") {
  CHECK(builtin_text() == read_file(kDatasets + "stories.txt"));
}

TEST_CASE("the built-in text is what its description says", "[data]") {
  const std::string readme = read_file(kDatasets + "README.md");
  const auto characters = Tokenizer::learn(TokenizerKind::character, builtin_text()).vocab();
  CHECK(
      test::mentions(readme, {fmt::format("**Size:** {} bytes", with_commas(builtin_text().size())),
                              fmt::format("**Distinct characters:** {}:", characters)}));
  CHECK(builtin_text().ends_with('\n'));
  CHECK(builtin_text().find('\r') == std::string_view::npos);
}
