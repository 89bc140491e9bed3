// How the command line is read: no value is dropped, taken from elsewhere or made of nothing.
#include "cli/options.hpp"

#include "support/catch.hpp"
#include "support/files.hpp"

using namespace headwise;
using namespace headwise::cli;

namespace {

enum class Fruit { apple, pear };
constexpr std::array<std::string_view, 2> names_of(Fruit) { return {"apple", "pear"}; }

struct Model {
  Index heads = 4;
  bool tie = true, small = false;

  void visit(auto&& v) {
    v("heads", heads, "heads");
    v("tie", tie, "on by default");
    v("small", small, "off by default");
  }
};

/// What a made-up command was given, with `model` on top of other defaults, as of a preset.
struct Given {
  std::string run, out = "none", prompt = "none";
  double lr = 0.5;
  Fruit fruit = Fruit::apple;
  Model bound, model{.heads = 8, .tie = false, .small = true};
  std::vector<std::string> names, options;

  void visit(auto&& v) {
    v("out", out, "a text");
    v("prompt", prompt, "a text that may be empty");
    v("lr", lr, "a number");
    v("fruit", fruit, "a name");
  }
} given;

Action one_command(Arguments& args, CommonOptions&) {
  given = {};
  args.add_required("run", "RUN", "a folder", given.run);
  args.bind(given);
  args.bind(given.bound);
  args.may_be_empty("--prompt");
  return [&args] {
    args.apply_given(given.model);
    given.options = args.all_given();
    return 7;
  };
}

Action list_command(Arguments& args, CommonOptions&) {
  given = {};
  args.add_list("name", "NAME", "names", given.names);
  args.bind(given);
  return [] { return 8; };
}

constexpr Command kCommands[] = {{"one", "takes a folder", one_command},
                                 {"list", "takes names", list_command}};

CommonOptions common;

int read(std::vector<const char*> words) {
  words.insert(words.begin(), "headwise");
  common = {};
  return read_command_line(words, kCommands, common)();
}

std::string refusal(const std::vector<const char*>& words) {
  return test::message_of<UsageError>([&] { read(words); });
}

}  // namespace

TEST_CASE("options are read in either form, in any order, among positional arguments",
          "[cli][options]") {
  CHECK(read({"one", "--lr=-2e-3", "folder", "--out", "x=y", "--fruit", "pear", "--seed", "3"}) ==
        7);
  CHECK(given.run == "folder");
  CHECK(given.lr == -2e-3);
  CHECK(given.out == "x=y");
  CHECK(given.fruit == Fruit::pear);
  CHECK(common.seed == 3);
  CHECK(given.options == std::vector<std::string>{"--seed", "--out", "--lr", "--fruit"});
  CHECK(read({"list", "a", "--lr", "-1", "b"}) == 8);
  CHECK(given.names == std::vector<std::string>{"a", "b"});
  CHECK(given.lr == -1);
  CHECK(read({"one", "--lr=1", "--", "--folder"}) == 7);
  CHECK(given.run == "--folder");
}

TEST_CASE("a text is taken as it is, whatever it looks like", "[cli][options]") {
  for (const char* text : {"{}", "[a,b]", "\"q\"", "-", "-x", "a,b", "one", " ", "\\n", "%%"}) {
    CAPTURE(text);
    read({"one", "run", "--out", text});
    CHECK(given.out == text);
  }
  read({"one", "run", "--out=--seed=3"});
  CHECK(given.out == "--seed=3");
  CHECK(common.seed == 1);
}

TEST_CASE("an empty value is refused, unless the option says that it may be empty",
          "[cli][options][errors]") {
  for (const char* option : {"--out", "--lr", "--fruit", "--heads", "--seed", "--threads"}) {
    const std::string joined = std::string(option) + "=";
    CHECK(refusal({"one", "run", option, ""}) == fmt::format("{}: must not be empty", option));
    CHECK(refusal({"one", "run", joined.c_str(), "--seed=3"}) ==
          fmt::format("{}: must not be empty", option));
  }
  CHECK(refusal({"one", ""}) == "run: must not be empty");
  CHECK(refusal({"list", "a", ""}) == "name: must not be empty");
  for (const std::vector<const char*>& words :
       {std::vector{"one", "run", "--prompt", ""}, {"one", "run", "--prompt=", "--lr", "1"}}) {
    read(words);
    CHECK(given.prompt.empty());
    CHECK(given.options.at(0) == "--prompt");
  }
}

TEST_CASE("an option is never taken for the value of another", "[cli][options][errors]") {
  CHECK(refusal({"one", "run", "--out", "--seed=3"}) ==
        "--out: needs a value, and '--seed=3' looks like an option; to give it as the value, write "
        "--out=--seed=3");
  CHECK(refusal({"one", "run", "--out", "-h"}).starts_with("--out: needs a value, and '-h'"));
  CHECK(refusal({"one", "run", "--out"}) == "--out: needs a value; see headwise one --help");
}

TEST_CASE("a boolean is true or false, for the flag and for what it is put on top of",
          "[cli][options]") {
  const auto check = [](const char* word, bool tie) {
    CAPTURE(word);
    read({"one", "run", word});
    CHECK(given.bound.tie == tie);
    CHECK(given.model.tie == tie);
  };
  for (const char* yes : {"--tie", "--tie=1", "--tie=yes", "--tie=True", "--tie=on", "--no-tie=0"})
    check(yes, true);
  for (const char* no : {"--no-tie", "--tie=0", "--tie=no", "--tie=FALSE", "--no-tie=true"})
    check(no, false);
  read({"one", "run", "--small=no"});
  CHECK_FALSE(given.model.small);
  CHECK_FALSE(given.model.tie);  // not given: as it was
  for (const char* text : {"2abc", "maybe", "", "{}", "2", "-1", " 1"})
    CHECK(refusal({"one", "run", fmt::format("--tie={}", text).c_str()}) ==
          fmt::format("--tie: expected true or false, got '{}'", text));
}

TEST_CASE("nothing is given twice", "[cli][options][errors]") {
  CHECK(refusal({"one", "run", "--lr", "1", "--lr=1"}) == "--lr: given twice");
  CHECK(refusal({"one", "run", "--tie", "--tie"}) == "--tie: given twice");
  CHECK(refusal({"one", "run", "--tie", "--no-tie"}) == "--no-tie: cannot be given with --tie");
}

TEST_CASE("what no command knows is named, and where help is", "[cli][options][errors]") {
  CHECK(refusal({"one", "run", "--hedas", "4"}) ==
        "unknown argument '--hedas'; see headwise one --help");
  CHECK(refusal({"one", "run", "other"}) == "unknown argument 'other'; see headwise one --help");
  CHECK(refusal({"one", "run", "--", "--lr"}) ==
        "unknown argument '--lr'; see headwise one --help");
  CHECK(refusal({"one", "run", "--help=no"}) ==
        "unknown argument '--help=no'; see headwise one --help");
  CHECK(refusal({"one"}) == "run is required; see headwise one --help");
  CHECK(refusal({"list", "[]"}) == "unknown argument '[]'; see headwise list --help");
  CHECK(refusal({"fly\x1b[31m"}) == "unknown argument 'fly\\x1b[31m'; see headwise --help");
  CHECK(refusal({"--lr", "1", "one"}) == "unknown argument '--lr'; see headwise --help");
  CHECK_THAT(refusal({}), Catch::Contains("see headwise --help"));
}

TEST_CASE("a number is read whole or refused", "[cli][options][errors]") {
  for (const char* text : {"0x", "0x10", "+5", " 5", "5 ", "1e3", "1.0", "9223372036854775808",
                           "99999999999999999999", "nan", "five"})
    CHECK(refusal({"one", "run", "--heads", text}) ==
          fmt::format("--heads: expected a whole number, got '{}'", text));
  for (const char* text : {"0x", "0x1p3", "+1", " 1", "1 ", "1,5", "1e999", "1e", "one"})
    CHECK(refusal({"one", "run", "--lr", text}) ==
          fmt::format("--lr: expected a number, got '{}'", text));
  CHECK(refusal({"one", "run", "--fruit", "plum"}) ==
        "--fruit: expected apple or pear, got 'plum'");
  CHECK(refusal({"one", "run", "--seed", "-1"}) == "--seed: expected a whole number, got '-1'");
}
