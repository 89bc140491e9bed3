// The file that the study page is. What a browser makes of it: tests/browser.
#include "cli/study_page.hpp"

#include <algorithm>
#include <clocale>
#include <filesystem>
#include <limits>
#include <locale>

#include "support/bytes.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/study_document.hpp"

using namespace headwise;
using test::Json;
using test::message_of;
using test::read_bytes;

namespace {

using Texts = std::vector<std::vector<std::string>>;

std::string page_of(const Json& document, const std::vector<study::HeadId>& heads,
                    const cli::PatternRow& pattern) {
  const test::TemporaryFolder folder;
  cli::write_study_page(folder / "page.html", document, heads, pattern);
  return read_bytes(folder / "page.html");
}

/// Each query attends to itself alone.
void to_itself(Index, study::HeadId, Index, std::span<double> row) { row.back() = 1; }

/// What stands between two marks, the first time.
std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != text.npos);
  const std::size_t start = at + from.size();
  return text.substr(start, text.find(to, start) - start);
}
std::string block(const std::string& page, const std::string& id) {
  return between(page, "id=\"" + id + "\">", "</script>");
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t times = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++times;
  return times;
}

/// The numbers of a pattern's block, decoded by the alphabet of RFC 4648.
std::vector<int> numbers_of(const std::string& base64) {
  REQUIRE(base64.size() % 4 == 0);
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<int> bytes, numbers;
  int bits = 0, held = 0;
  for (const char c : base64.substr(0, base64.find('='))) {
    REQUIRE(digits.find(c) != digits.npos);
    bits = (bits << 6 | static_cast<int>(digits.find(c))) & 0xffff;
    if ((held += 6) >= 8) bytes.push_back(bits >> (held -= 8) & 255);
  }
  REQUIRE(bytes.size() % 2 == 0);
  for (std::size_t i = 0; i < bytes.size(); i += 2) numbers.push_back(bytes[i] | bytes[i + 1] << 8);
  return numbers;
}

}  // namespace

TEST_CASE("the document stands in the page and comes back as it was", "[cli][study]") {
  const Json document =
      test::made_up_document(2, 4, {test::hostile_tokens(), test::plain_tokens(9)});
  const std::string page = page_of(document, test::made_up_heads(2, 4), to_itself);
  const std::string written = block(page, "document");
  CHECK(Json::parse(written) == document);
  // Nothing ends the element, and nothing is beyond ASCII: no U+2028, no turning marks, no NUL.
  CHECK(written.find('<') == written.npos);
  CHECK(std::all_of(written.begin(), written.end(), [](char c) { return c >= ' ' && c < 127; }));
  CHECK(page.find('\0') == page.npos);
  CHECK(page.starts_with("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">"));
  CHECK(page.ends_with("</html>\n"));
  // A script for the document, for each pattern, and for the page; whatever the tokens say.
  CHECK(occurrences(page, "</script") == 1 + 2 * 8 + 1);
  CHECK(occurrences(page, "<script") ==
        occurrences(page, "</script") + occurrences(page, "'<script"));
}

TEST_CASE("patterns stand in the page as 16-bit triangles", "[cli][study]") {
  for (const Index n : {1, 2, 3, 4, 5, 300}) {  // every length of the rest that base64 pads
    CAPTURE(n);
    const Json document = test::made_up_document(1, 2, {test::plain_tokens(n)});
    const auto value = [](Index head, Index i, Index j) {
      return static_cast<double>((head + 1) * (i + 2 * j) % 11) / 10;
    };
    const std::string page =
        page_of(document, {{0, 0}, {0, 1}},
                [&](Index text, study::HeadId head, Index i, std::span<double> row) {
                  REQUIRE(text == 0);
                  REQUIRE(row.size() == static_cast<std::size_t>(i) + 1);
                  for (Index j = 0; j <= i; ++j)
                    row[static_cast<std::size_t>(j)] = value(head.head, i, j);
                });
    for (Index head = 0; head < 2; ++head) {
      std::vector<int> expected;
      for (Index i = 0; i < n; ++i)
        for (Index j = 0; j <= i; ++j)
          expected.push_back(static_cast<int>(std::lround(65535 * value(head, i, j))));
      CHECK(numbers_of(block(page, fmt::format("pattern-0-0-{}", head))) == expected);
    }
  }
}

TEST_CASE("only the heads that are asked for have a pattern in the page", "[cli][study]") {
  const Json document = test::made_up_document(3, 4, {test::plain_tokens(4)});
  const std::string page = page_of(document, {{2, 3}, {0, 1}}, to_itself);
  CHECK(occurrences(page, "id=\"pattern-") == 2);
  CHECK(page.find("id=\"pattern-0-2-3\"") < page.find("id=\"pattern-0-0-1\""));
}

TEST_CASE("a pattern a little outside 0 to 1 is rounded; one that is no number is an error",
          "[cli][study][errors]") {
  const Json document = test::made_up_document(1, 1, {test::plain_tokens(1)});
  const auto with = [&](double a) {
    return page_of(document, {{0, 0}},
                   [a](Index, study::HeadId, Index, std::span<double> row) { row[0] = a; });
  };
  CHECK(block(with(1.0000001), "pattern-0-0-0") == "//8=");
  CHECK(block(with(-1e-9), "pattern-0-0-0") == "AAA=");
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), HUGE_VAL})
    CHECK(message_of<DataError>([&] { with(bad); }) ==
          "study: the pattern of head 0.0 is not finite at query 0");
}

TEST_CASE("the size is known before the page is written, to the byte", "[cli][study]") {
  for (const Index n : {1, 7, 64}) {
    const Json document =
        test::made_up_document(2, 3, {test::plain_tokens(n), test::hostile_tokens()});
    const auto heads = test::made_up_heads(2, 3);
    CHECK(cli::study_page_size(document, heads) == page_of(document, heads, to_itself).size());
  }
  Json full = test::made_up_document(2, 3, {test::plain_tokens(30)});
  const auto heads = test::made_up_heads(2, 3);
  const Json texts = {{"texts", full["texts"]}};
  CHECK(cli::study_page_size(texts, heads) < cli::study_page_size(full, heads));
}

TEST_CASE("a page above the limit is refused with advice before anything is written",
          "[cli][study][errors]") {
  const test::TemporaryFolder folder;
  // A model of the size of GPT-2 small fits; over a context of 1024 it does not.
  Json document = {{"texts", {{{"tokens", test::plain_tokens(512)}}}}};
  const auto heads = test::made_up_heads(12, 12);
  const std::uintmax_t fits = cli::study_page_size(document, heads);
  CHECK(fits > 50'000'000);
  CHECK(fits < cli::kPageLimit);
  CHECK_NOTHROW(cli::check_page_size(fits));
  CHECK_NOTHROW(cli::check_page_size(cli::kPageLimit));
  CHECK_THROWS_AS(cli::check_page_size(cli::kPageLimit + 1), UsageError);

  document["texts"][0]["tokens"] = test::plain_tokens(1024);
  const std::string error = message_of<UsageError>([&] {
    cli::write_study_page(folder / "page.html", document, heads,
                          [](auto&&...) { FAIL("no pattern is needed"); });
  });
  CHECK(test::mentions(error, {"--out", "202 MB", "64 MB", "--layers", "--heads", "--range"}));
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("patterns are asked for row by row as the page is written, and an error leaves no file",
          "[cli][study][errors]") {
  const test::TemporaryFolder folder;
  const Json document = test::made_up_document(2, 2, {test::plain_tokens(3)});
  std::vector<std::string> asked;
  const auto until = [&](std::size_t rows) {
    return [&, rows](Index text, study::HeadId head, Index i, std::span<double>) {
      asked.push_back(fmt::format("{} {} {}", text, study::name_of(head), i));
      require<DataError>(asked.size() < rows, "that is enough");
    };
  };
  test::write_bytes(folder / "page.html", "old");
  CHECK(message_of<DataError>([&] {
          cli::write_study_page(folder / "page.html", document, test::made_up_heads(2, 2),
                                until(5));
        }) == "that is enough");
  CHECK(asked == std::vector<std::string>{"0 0.0 0", "0 0.0 1", "0 0.0 2", "0 0.1 0", "0 0.1 1"});
  CHECK(read_bytes(folder / "page.html") == "old");
  CHECK_FALSE(std::filesystem::exists(folder / "page.html.tmp"));
  CHECK_THROWS_AS(cli::write_study_page(folder / "none/page.html", document, {}, to_itself),
                  DataError);
}

TEST_CASE("numbers of the page have points whatever the locale", "[cli][study]") {
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const Json document = test::made_up_document(2, 2, {test::plain_tokens(5)});
  const auto heads = test::made_up_heads(2, 2);
  const std::string expected = page_of(document, heads, to_itself);
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Comma));
  const bool german = std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
  const std::string page = page_of(document, heads, to_itself);
  const std::string error = message_of<UsageError>([] { cli::check_page_size(1234567890); });
  std::setlocale(LC_ALL, "C");
  std::locale::global(before);
  INFO((german ? "with de_DE" : "without de_DE"));
  CHECK(page == expected);
  CHECK(test::mentions(error, {" 1235 MB"}));
}
