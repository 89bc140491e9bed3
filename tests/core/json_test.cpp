#include "core/json.hpp"

#include <clocale>
#include <limits>

#include "support/catch.hpp"
#include "support/files.hpp"

using namespace headwise;
using nlohmann::json;

namespace {

/// What reading `text` says about it.
std::string error_of(const std::string& text, const JsonLimits& limits = {}) {
  return test::message_of<DataError>([&] { (void)parse_json(text, "x.json", limits); });
}

}  // namespace

TEST_CASE("JSON is read as the JSON library writes it", "[core][json]") {
  const json value = {{"list", {1, -2, 2.5, true, nullptr, "t\"\n\xc3\xbc"}},
                      {"empty", {{"object", json::object()}, {"list", json::array()}}},
                      {"", std::numeric_limits<std::uint64_t>::max()}};
  CHECK(parse_json(value.dump(), "x.json") == value);
  CHECK(parse_json(" " + value.dump(2) + "\r\n", "x.json") == value);
  for (const char* one : {"null", "0", "-1.5e3", "\"\"", "[]", "{}"})
    CHECK(parse_json(one, "x.json").dump() == json::parse(one).dump());
}

TEST_CASE("what is not JSON is refused with line and column", "[core][json][errors]") {
  CHECK(error_of("") == "x.json: not JSON: line 1, column 1: it ends too early");
  CHECK(error_of("{\"a\":") == "x.json: not JSON: line 1, column 6: it ends too early");
  CHECK(error_of("{\n  \"a\": 1,\n}") == "x.json: not JSON: line 3, column 1: unexpected '}'");
  CHECK(error_of("{} {}") == "x.json: not JSON: line 1, column 4: unexpected '{'");
  CHECK(error_of(std::string("{}\0", 3)) == "x.json: not JSON: line 1, column 3: a NUL byte");
  CHECK(error_of("[\"\xff\"]") == "x.json: not JSON: line 1, column 3: a text is not UTF-8");
  CHECK(error_of("[1e999]") == "x.json: not JSON: line 1, column 6: 1e999 is too large a number");
  // Foreign text is escaped and cut.
  CHECK(error_of("[\"" + std::string(1000000, 'x') + "\x1b\"]").size() < 200);
  CHECK(error_of("[\"\x1b\"]").find('\x1b') == std::string::npos);
  for (const char* bad :
       {"{a:1}", "{'a':1}", "[1,]", "[01]", "[NaN]", "[.5]", "[1.]", "//x\n1", "tru"})
    CHECK(error_of(bad).starts_with("x.json: not JSON: line 1, column "));
}

TEST_CASE("a key that stands twice is named, at any depth", "[core][json][errors]") {
  CHECK(error_of(R"({"a":1,"b":2,"a":1})") == "x.json: 'a' stands twice");
  CHECK(error_of(R"({"m":{"w":1,"\u0077":2}})") == "x.json: 'm.w' stands twice");
  CHECK(error_of(R"({"m":[{"w":1},{"w":1,"x":{"y":1,"y":1}}]})") == "x.json: 'm.x.y' stands twice");
  CHECK(error_of(R"([{"a":1},{"a":{"a":1}}])") == "nothing was thrown");
}

TEST_CASE("JSON has limits", "[core][json][errors]") {
  const auto nested = [](std::size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  CHECK(error_of(nested(64)) == "nothing was thrown");
  CHECK(error_of(nested(65)) == "x.json: more than 64 brackets are open at once");
  CHECK(error_of(nested(1000000)) == "x.json: more than 64 brackets are open at once");
  const std::string text((1 << 24) - 8, 'x'), quote = "\\\"\\\"\\\"\\\"";
  CHECK(error_of("[1,\n\"" + text + quote + "\"]") == "nothing was thrown");
  CHECK(error_of("[1,\n\"" + text + quote + ",\"]") ==
        "x.json: line 2, column 2: a text or number of 16777217 bytes, at most 16777216 are read");
  CHECK(error_of("[" + std::string((1 << 24) + 1, '1') + "]") ==
        "x.json: line 1, column 2: a text or number of 16777217 bytes, at most 16777216 are read");
  CHECK(error_of("[1]", {.bytes = 3}) == "nothing was thrown");
  CHECK(error_of("[1] ", {.bytes = 3}) == "x.json: has 4 bytes of JSON, at most 3 are read");
}

TEST_CASE("values are taken as just their type", "[core][json][errors]") {
  const json j = {{"b", true}, {"n", 3},           {"big", 9223372036854775808ULL},
                  {"x", 2.5},  {"s", "t\x1b"},     {"m", {{"deep", json::array({1, "two"})}}},
                  {"neg", -1}, {"i32", 2147483648}};
  const JsonView v(j, "c.json");
  CHECK(v["b"].as<bool>());
  CHECK(v["n"].as<std::int64_t>() == 3);
  CHECK(v["n"].as<double>() == 3);
  CHECK(v["x"].as<double>() == 2.5);
  CHECK(v["big"].as<std::uint64_t>() == 9223372036854775808ULL);
  CHECK(v["s"].as<std::string>() == "t\x1b");
  CHECK(v["m"]["deep"].elements()[0].as<std::int32_t>() == 1);
  CHECK_FALSE(v.has("no"));

  const auto says = [&](auto f) { return test::message_of<DataError>(f); };
  CHECK(says([&] { (void)v["no"]; }) == "c.json: has no 'no'");
  CHECK(says([&] { (void)v["m"]["no"]; }) == "c.json: 'm': has no 'no'");
  CHECK(says([&] { (void)v["n"]["no"]; }) == "c.json: 'n': expected an object, got 3");
  CHECK(says([&] { (void)v["n"].as<bool>(); }) == "c.json: 'n': expected true or false, got 3");
  CHECK(says([&] { (void)v["x"].as<std::int64_t>(); }) ==
        "c.json: 'x': expected a whole number from -2^63 to 2^63 - 1, got 2.5");
  CHECK(says([&] { (void)v["big"].as<std::int64_t>(); }) ==
        "c.json: 'big': expected a whole number from -2^63 to 2^63 - 1, got 9223372036854775808");
  CHECK(says([&] { (void)v["neg"].as<std::uint64_t>(); }) ==
        "c.json: 'neg': expected a whole number from 0 to 2^64 - 1, got -1");
  CHECK(says([&] { (void)v["i32"].as<std::int32_t>(); }) ==
        "c.json: 'i32': expected a whole number from -2^31 to 2^31 - 1, got 2147483648");
  CHECK(says([&] { (void)v["m"]["deep"].elements()[1].as<double>(); }) ==
        "c.json: 'm.deep[1]': expected a number, got \"two\"");
  CHECK(says([&] { (void)v["m"]["deep"].as<bool>(); }) ==
        "c.json: 'm.deep': expected true or false, got a list of 2");
  CHECK(says([&] { (void)v["b"].elements(); }) == "c.json: 'b': expected a list, got true");
  CHECK(says([&] {
          v["m"].require_known({"x", "y"});
        }) == "c.json: 'm': unknown key 'deep'; known: x, y");
  CHECK(says([&] { v["m"].require_known({"deep"}); }) == "nothing was thrown");
}

TEST_CASE("bytes that are not UTF-8 are found, and do not stop a dump", "[core][json]") {
  const json bad = {{"data", {"good", "\xff"}}};
  CHECK_FALSE(is_utf8(bad));
  CHECK_FALSE(is_utf8(json{{"\xff", 1}}));
  CHECK(is_utf8(json{{"data", {"\xc3\xbc", 1, nullptr}}}));
  CHECK(json_text(bad) == "{\"data\":[\"good\",\"\xef\xbf\xbd\"]}");
}
