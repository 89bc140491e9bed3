#include "headwise/core/parse.hpp"

#include <fmt/format.h>

#include <array>
#include <clocale>
#include <cmath>
#include <cstdint>
#include <limits>
#include <locale>
#include <string>

#include "support/catch.hpp"

using namespace headwise;

namespace {

enum class Fruit { kApple, kPear };
constexpr std::array<std::string_view, 2> names_of(Fruit) { return {"apple", "pear"}; }

/// Numbers as in Germany: 1.000,5.
struct Comma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

/// A host program with the user's own locale (where the system has it).
class GermanHost {
 public:
  GermanHost() {
    std::locale::global(std::locale(before_, new Comma));
    std::setlocale(LC_ALL, "de_DE.UTF-8");
  }
  ~GermanHost() {
    std::locale::global(before_);
    std::setlocale(LC_ALL, "C");
  }
  GermanHost(const GermanHost&) = delete;
  GermanHost& operator=(const GermanHost&) = delete;

 private:
  std::locale before_;
};

}  // namespace

TEST_CASE("a number is all of a text", "[core]") {
  CHECK(parse_number<double>("0.1") == 0.1);
  CHECK(parse_number<double>("-1e-3") == -0.001);
  CHECK(parse_number<double>("5") == 5);
  CHECK(parse_number<double>(".5") == 0.5);
  CHECK(parse_number<double>("1e3") == 1000);
  CHECK(parse_number<int>("-12") == -12);
  CHECK(parse_number<std::int64_t>("9223372036854775807") ==
        std::numeric_limits<std::int64_t>::max());
  CHECK(parse_number<std::uint64_t>("18446744073709551615") ==
        std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("a text that is not all a number is none", "[core][errors]") {
  for (const char* text : {"", " ", " 1", "1 ", "1e-3x", "0,1", "1.000,5", "abc", "+1", "--1", "-",
                           ".", "e3", "1e", "0x10", "1_000", "1\n", "1;2"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number<double>(text));
    CHECK_FALSE(parse_number<std::int64_t>(text));
  }
  CHECK_FALSE(parse_number<double>(std::string_view("1\0", 2)));
  CHECK_FALSE(parse_number<double>(std::string_view()));
}

TEST_CASE("a whole number has no fraction and fits its type", "[core][errors]") {
  CHECK_FALSE(parse_number<int>("1.5"));
  CHECK_FALSE(parse_number<int>("1e3"));
  CHECK_FALSE(parse_number<std::int64_t>("9223372036854775808"));
  CHECK_FALSE(parse_number<std::uint64_t>("-1"));
  CHECK_FALSE(parse_number<double>("1e400"));
}

TEST_CASE("not-a-number and infinity are numbers to the parser", "[core]") {
  // Which numbers an option takes is the option's own rule.
  CHECK(std::isnan(parse_number<double>("nan").value()));
  CHECK(parse_number<double>("inf") == std::numeric_limits<double>::infinity());
  CHECK(parse_number<double>("-inf") == -std::numeric_limits<double>::infinity());
  CHECK_FALSE(parse_number<int>("nan"));
  CHECK_FALSE(parse_number<double>("infx"));
}

TEST_CASE("what fmt writes reads back as the same double", "[core]") {
  for (const double x : {0.1, 1.0 / 3, 6e-4, 1e-323, 1.7976931348623157e308, -0.0, 123456789.123}) {
    const std::string text = fmt::format("{}", x);
    CAPTURE(text);
    const auto back = parse_number<double>(text);
    REQUIRE(back.has_value());
    CHECK(*back == x);
    CHECK(std::signbit(*back) == std::signbit(x));
  }
}

TEST_CASE("a host's decimal comma changes no number", "[core]") {
  const GermanHost host;
  CHECK(parse_number<double>("0.1") == 0.1);
  CHECK_FALSE(parse_number<double>("0,1"));
  CHECK_FALSE(parse_number<int>("1.000"));
  CHECK(fmt::format("{} {}", 0.1, 1000) == "0.1 1000");
}

TEST_CASE("a name stands for one value of an enumeration", "[core]") {
  CHECK(name_of(Fruit::kPear) == "pear");
  CHECK(parse_name<Fruit>("apple") == Fruit::kApple);
  CHECK(parse_name<Fruit>("pear") == Fruit::kPear);
  for (const char* text : {"", "Pear", "pea", "pears"}) CHECK_FALSE(parse_name<Fruit>(text));
}
