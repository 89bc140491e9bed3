// Reading text files, the built-in corpus, and what is refused.
#include "headwise/data/text.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "headwise/core/file.hpp"
#include "headwise/data/tokenizer.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/process.hpp"

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

TEST_CASE("a text that a file names is a regular file", "[data][errors]") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const std::string& path : {folder / "pipe", std::string("/dev/zero")})
    CHECK(message_of<DataError>([&] { read_text(path, nullptr, Accept::regular); }) ==
          path + ": is not a regular file");
}

TEST_CASE("packed ids are the ids, in as few bytes as they need", "[data][packed]") {
  for (const Id most : {1, 255, 256, 65535, 65536, 2147483647}) {
    const std::vector<Id> ids{0, most, 1, most - 1, 0};
    PackedIds packed(Index{most} + 1, ids.size());
    for (const Id id : ids) packed.push_back(id);
    CHECK(packed.ids() == ids);
    CHECK(packed == PackedIds(ids));
    CHECK(packed[3] == most - 1);
    const PackedIds part = packed.part(1, 4).part(1, 3);
    CHECK(part.ids() == std::vector<Id>{1, most - 1});
    CHECK_FALSE(part == packed);
    CHECK_THROWS_AS(part.part(1, 3), ShapeError);
  }
  CHECK(PackedIds(std::vector<Id>{kIgnore, 3}).ids() == std::vector<Id>{kIgnore, 3});
  CHECK(PackedIds().empty());
}

TEST_CASE("a text and its tokens take little more than twice its size", "[data][packed][memory]") {
  if (test::kSanitized) return;
  const TemporaryFolder folder;
  constexpr std::int64_t kBytes = 20 << 20;
  {
    std::string text(static_cast<std::size_t>(kBytes), ' ');
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i * i % 26);
    replace_file(folder / "text", text);
  }
  std::ofstream from_now("/proc/self/clear_refs");
  from_now << 5 << std::flush;  // the most so far is what there is now
  const std::int64_t before = test::peak_resident_bytes();
  const std::string text = read_text(folder / "text");
  const Tokenizer tokenizer = Tokenizer::learn(TokenizerKind::character, text);
  const Split parts = split(tokenizer.encode_packed(text), 64);
  CHECK(parts.train.size() + parts.valid.size() == text.size());
  CHECK(tokenizer.packed_bytes(parts.valid) == static_cast<Index>(parts.valid.size()));
  if (from_now.good()) CHECK(test::peak_resident_bytes() - before < kBytes * 5 / 2);
}
