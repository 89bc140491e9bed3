#include "headwise/core/nearest.hpp"

#include "support/catch.hpp"

using namespace headwise;

TEST_CASE("an edit is a character inserted, removed or replaced, or two exchanged") {
  CHECK(edit_distance("heads", "heads") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("heads", "head") == 1);
  CHECK(edit_distance("heds", "heads") == 1);
  CHECK(edit_distance("hexds", "heads") == 1);
  CHECK(edit_distance("haeds", "heads") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("ca", "abc") == 3);  // a character is edited once
}

TEST_CASE("only the start of a long name is compared") {
  CHECK(edit_distance(std::string(10'000'000, 'a'), std::string(64, 'a')) == 0);
}

TEST_CASE("the nearest names come first, equals in their order") {
  const std::vector<std::string> known = {"width", "context", "heads", "layers", "head"};
  CHECK(nearest("haeds", known) == std::vector<std::string>{"heads", "head", "layers"});
  CHECK(nearest("x", known, 9).size() == 5);
  CHECK(nearest("x", {}).empty());
  const std::vector<std::string> equals = {"ac", "ab"};
  CHECK(nearest("a", equals) == equals);
}

TEST_CASE("a name is suggested when at most a third of what was given is wrong") {
  const std::vector<std::string> known = {"heads", "width"};
  CHECK(did_you_mean("haeds", known) == "; did you mean 'heads'?");
  CHECK(did_you_mean("wdt", known).empty());
  CHECK(did_you_mean("", known).empty());
  CHECK(did_you_mean("heads", {}).empty());
}
