// Tasks: their definitions by plain code, the split, files, and batches.
#include "headwise/data/task.hpp"

#include "headwise/data/tokenizer.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "data/task_parts.hpp"
#include "headwise/core/error.hpp"
#include "headwise/core/file.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace headwise;
using test::message_of;
using test::TemporaryFolder;

namespace {

using Strings = std::vector<std::string>;
using Counted = std::vector<std::uint8_t>;

/// What the answer follows from.
std::string input_of(const Example& e) { return e.text.substr(0, e.text.find('\t')); }

std::size_t counted_in(const Example& e) {
  return static_cast<std::size_t>(std::count(e.counted.begin(), e.counted.end(), 1));
}

/// Counted as the induction task says, by comparing every pair: the letter before this one has
/// stood at an earlier place. The newline is no letter.
Counted repeats(const std::string& text) {
  Counted counted(text.size());
  for (std::size_t i = 2; i < text.size(); ++i)
    for (std::size_t earlier = 1; earlier < i - 1; ++earlier)
      if (text[earlier] == text[i - 1]) counted[i] = 1;
  return counted;
}

/// The task of a file of these bytes, or what is said about it after the file's name.
std::unique_ptr<Task> task_of(std::string_view bytes) {
  const TemporaryFolder folder;
  replace_file(folder / "pairs.tsv", bytes);
  return make_task(folder / "pairs.tsv");
}
std::string refusal_of(std::string_view bytes) {
  const TemporaryFolder folder;
  const std::string path = folder / "pairs.tsv";
  replace_file(path, bytes);
  const std::string message = message_of<DataError>([&] { make_task(path); });
  REQUIRE(message.starts_with(path + ": "));
  return message.substr(path.size() + 2);
}

std::set<std::string> texts(const Task& task, bool valid, int draws = 1000) {
  Rng rng(1);
  std::set<std::string> seen;
  for (int i = 0; i < draws; ++i) seen.insert((valid ? task.valid(rng) : task.train(rng)).text);
  return seen;
}

}  // namespace

TEST_CASE("copy is a prompt, a tab and the prompt again", "[data][task]") {
  const auto task = make_task("copy");
  CHECK(task->longest() == 42);
  CHECK(task->accuracy() == Accuracy::whole);
  Rng rng(1);
  for (int i = 0; i < 200; ++i) {
    const Example e = i % 2 == 0 ? task->train(rng) : task->valid(rng);
    const std::string prompt = e.text.substr(0, 20);
    CHECK(prompt.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos);
    CHECK(e.text == prompt + "\t" + prompt + "\n");
    Counted answer_and_newline(42, 0);
    std::fill(answer_and_newline.begin() + 21, answer_and_newline.end(), 1);
    CHECK(e.counted == answer_and_newline);
  }
  CHECK(make_task("copy", 3)->train(rng).text.size() == 8);
}

TEST_CASE("the letters to copy are uniform", "[data][task]") {
  const auto task = make_task("copy", 100);
  Rng rng(1);
  std::map<char, double> seen;
  for (int i = 0; i < 1000; ++i)
    for (const char c : input_of(task->train(rng))) ++seen[c];
  REQUIRE(seen.size() == 26);
  const double mean = 100000.0 / 26, sigma = std::sqrt(mean * 25 / 26);
  for (const auto& [c, n] : seen) CHECK(std::abs(n - mean) < 4 * sigma);
}

TEST_CASE("induction counts the letters after one that has occurred", "[data][task]") {
  const auto task = make_task("induction");
  CHECK(task->longest() == 65);
  CHECK(task->accuracy() == Accuracy::each);
  Rng rng(1);
  for (int i = 0; i < 500; ++i) {
    const Example e = i % 2 == 0 ? task->train(rng) : task->valid(rng);
    REQUIRE(e.text.size() == 65);
    CHECK(e.text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEF", 1) == std::string::npos);
    CHECK(e.text[0] == '\n');
    CHECK(e.counted == repeats(e.text));
  }
  CHECK(tasks::induction().example("abcabx").counted == Counted{0, 0, 0, 0, 0, 1, 1});
  CHECK(tasks::induction().example("aab").counted == Counted{0, 0, 0, 1});
  CHECK(tasks::induction().example("abca").counted == Counted{0, 0, 0, 0, 0});
}

TEST_CASE("a letter's image follows with probability 0.8 + 0.2/32", "[data][task]") {
  // So long a walk that the most frequent follower of a letter is its image.
  const auto task = make_task("induction", 40000);
  Rng rng(1);
  double images = 0, steps = 0;
  for (int walk = 0; walk < 3; ++walk) {
    const std::string text = task->train(rng).text;
    std::map<char, std::map<char, int>> followers;
    for (std::size_t i = 1; i + 1 < text.size(); ++i) ++followers[text[i]][text[i + 1]];
    REQUIRE(followers.size() == 32);
    std::set<char> seen;
    for (const auto& [letter, counts] : followers) {
      const auto more = [](const auto& a, const auto& b) { return a.second < b.second; };
      const auto image = *std::max_element(counts.begin(), counts.end(), more);
      seen.insert(image.first);
      images += image.second;
      for (const auto& [follower, n] : counts) steps += n;
    }
    CHECK(seen.size() == 32);  // each letter is the image of one: a permutation
  }
  const double p = 0.8 + 0.2 / 32;
  CHECK(std::abs(images / steps - p) < 4 * std::sqrt(p * (1 - p) / steps));
}

TEST_CASE("every sequence's permutation and first letter are its own", "[data][task]") {
  const auto task = make_task("induction");
  const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEF";
  Rng rng(1);
  std::map<std::size_t, int> first, step;
  for (int i = 0; i < 4000; ++i) {
    const std::string text = task->train(rng).text;
    const std::size_t a = letters.find(text[1]), b = letters.find(text[2]);
    ++first[a];
    ++step[(b + 32 - a) % 32];  // uniform, as a's image is
  }
  for (const auto& counts : {first, step}) {
    CHECK(counts.size() == 32);
    for (const auto& [which, n] : counts) CHECK(std::abs(n - 125) < 4 * std::sqrt(125.0));
  }
}

// 0.677 and 0.564: the same in Python, for 20 000 walks that it drew itself.
TEST_CASE("copying the most frequent follower is right for 0.68 of what counts", "[data][task]") {
  const auto task = make_task("induction");
  Rng rng(1);
  double right = 0, counted = 0;
  constexpr int kWalks = 2000;
  for (int walk = 0; walk < kWalks; ++walk) {
    const Example e = task->train(rng);
    std::map<char, std::map<char, int>> followers;
    for (std::size_t i = 1; i + 1 < e.text.size(); ++i) {
      std::pair<int, char> best{0, ' '};
      for (const auto& [follower, n] : followers[e.text[i]]) best = std::max(best, {n, follower});
      right += e.counted[i + 1] != 0 && best.second == e.text[i + 1];
      counted += e.counted[i + 1];
      ++followers[e.text[i]][e.text[i + 1]];
    }
  }
  CHECK(std::abs(right / counted - 0.677) < 0.01);
  CHECK(std::abs(counted / (64 * kWalks) - 0.564) < 0.01);
}

TEST_CASE("the smallest lengths give sequences that count something", "[data][task]") {
  for (const TaskSpec& spec : task_table()) {
    for (Index length = spec.least; length < 40; length += 6) {
      CAPTURE(spec.name, length);
      const auto task = make_task(spec.name, length);
      Rng rng(1);
      for (int i = 0; i < 50; ++i) {
        CHECK(counted_in(task->train(rng)) > 0);
        CHECK(counted_in(task->valid(rng)) > 0);
      }
    }
  }
}

TEST_CASE("what every generated task promises", "[data][task]") {
  CHECK(task_names() == Strings{"copy", "induction"});
  for (const TaskSpec& spec : task_table()) {
    CAPTURE(spec.name);
    const auto task = make_task(spec.name);
    CHECK(task->name() == spec.name);
    CHECK(!task->about().empty());
    CHECK(task->about().find('\n') == std::string::npos);
    CHECK(task->train_size() == 0);
    CHECK(task->valid_size() == 0);
    CHECK_FALSE(task->shared());
    const Strings alphabet = task->alphabet();
    CHECK(std::is_sorted(alphabet.begin(), alphabet.end(), std::less_equal<>()));
    std::string seen;
    Rng rng(1), again(1), other(2);
    bool differs = false;
    for (int i = 0; i < 300; ++i) {
      const Example train = task->train(rng), valid = task->valid(rng);
      for (const Example& e : {train, valid}) {
        CHECK(static_cast<Index>(e.text.size()) <= task->longest());
        CHECK(e.counted.size() == e.text.size());
        CHECK(e.counted[0] == 0);
        seen += e.text;
      }
      CHECK(task->train(again).text == train.text);
      CHECK(task->valid(again).text == valid.text);
      differs = differs || task->train(other).text != train.text;
    }
    CHECK(differs);
    std::set<std::string> characters;
    for (const char c : seen) characters.emplace(1, c);
    CHECK(Strings(characters.begin(), characters.end()) == alphabet);
  }
}

TEST_CASE("training and validation never share an input", "[data][task]") {
  for (const char* name : {"copy", "induction"}) {
    const auto task = make_task(name, name == std::string("copy") ? 3 : 4);
    std::set<std::string> train, valid;
    Rng a(1), b(2);
    for (int i = 0; i < 10000; ++i) {
      train.insert(input_of(task->train(a)));
      valid.insert(input_of(task->valid(b)));
    }
    CHECK(train.size() > 1000);
    CHECK(valid.size() > 500);
    for (const std::string& input : valid) CHECK(train.count(input) == 0);
  }
}

TEST_CASE("one input in ten validates", "[data][task]") {
  int n = 0;
  for (int i = 0; i < 10000; ++i) n += validates(fmt::to_string(i));
  CHECK(std::abs(n - 1000) < 4 * 30);
}

// Of tests/golden's kind, but short: FNV-1a and SplitMix64's finalizer in Python's whole numbers.
//   x = 0xCBF29CE484222325; for c in b: x = (x ^ c) * 0x100000001B3 % 2**64
//   z = x; z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
//   z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64; z ^= z >> 31; z % 10 == 0
TEST_CASE("the split of an input stays what it is", "[data][task]") {
  std::vector<int> held_out;
  for (int i = 0; i < 100; ++i)
    if (validates(fmt::to_string(i))) held_out.push_back(i);
  CHECK(held_out == std::vector<int>{2, 13, 20, 24, 41, 42, 50, 68, 76, 86, 96});
}

TEST_CASE("a task without inputs for a part says so", "[data][task][errors]") {
  TaskSpec spec = tasks::copy();
  spec.input = [](Index, Rng&) { return std::string("a"); };  // trains
  const auto task = generated_task(spec, 1);
  Rng rng(1);
  CHECK(task->train(rng).text == "a\ta\n");
  CHECK(message_of<UsageError>([&] { return task->valid(rng); }) ==
        "task: copy of length 1 leaves no input to validate on (10000 draws); a greater one does");
}

TEST_CASE("unknown tasks and lengths are refused by name", "[data][task][errors]") {
  const auto refused = [](const std::string& name, Index length) {
    return message_of<UsageError>([&] { make_task(name, length); });
  };
  const std::string unknown =
      "is none of copy, induction, and no file (FILE.tsv: a file's name has a '.' or '/' in it)";
  CHECK(refused("foo", 0) == "task: 'foo' " + unknown);
  CHECK(refused("", 0) == "task: '' " + unknown);
  CHECK(refused("copy", -1) == "length: must be in [1, 65536], got -1");
  CHECK(refused("copy", 65537) == "length: must be in [1, 65536], got 65537");
  CHECK(refused("induction", 2) == "length: must be in [3, 65536], got 2");
  CHECK(refused("a.tsv", 5) == "length: 5 was given, but the lines of a.tsv have their own");
  CHECK(make_task("copy", 65536)->longest() == 131074);
  CHECK(message_of<DataError>([] { make_task("no/such.tsv"); }).starts_with("no/such.tsv: "));
}

TEST_CASE("a file's lines are its examples", "[data][task]") {
  // 2 and 13 validate; the second line has characters of two and three bytes.
  const auto task = task_of(
      "\xEF\xBB\xBF"
      "2\ttwo\r\n1\tgr\u00FC\u20AC\n13\tx\n\r\n\n");
  CHECK(task->accuracy() == Accuracy::whole);
  CHECK(task->train_size() == 1);
  CHECK(task->valid_size() == 2);
  CHECK_FALSE(task->shared());
  CHECK(task->longest() == 7);
  CHECK(task->alphabet() ==
        Strings{"\t", "\n", "1", "2", "3", "g", "o", "r", "t", "w", "x", "\u00FC", "\u20AC"});
  CHECK(texts(*task, false) == std::set<std::string>{"1\tgr\u00FC\u20AC\n"});
  CHECK(texts(*task, true) == std::set<std::string>{"2\ttwo\n", "13\tx\n"});
  CHECK(task->valid_example(0).text == "2\ttwo\n");
  CHECK(task->valid_example(1).text == "13\tx\n");
  CHECK_THROWS_AS(task->valid_example(2), ShapeError);
  CHECK_THROWS_AS(task->valid_example(-1), ShapeError);
  CHECK_THROWS_AS(make_task("copy")->valid_example(0), ShapeError);
  Rng rng(1);
  CHECK(task->train(rng).counted == Counted{0, 0, 1, 1, 1, 1, 1});
  CHECK(task->name().ends_with("pairs.tsv"));
}

TEST_CASE("a line that stands there twice is one example", "[data][task]") {
  const auto task = task_of("1\ta\n2\tb\n1\ta\n3\tc");
  CHECK(task->train_size() == 2);
  CHECK(task->valid_size() == 1);
}

TEST_CASE("a file too small to part is both parts", "[data][task]") {
  const std::set<std::string> train{"1\ta\n", "3\tc\n"}, valid{"2\ta\n", "13\tc\n"};
  const auto no_valid = task_of("1\ta\n3\tc\n"), no_train = task_of("2\ta\n13\tc\n");
  for (const auto& [task, all] : {std::pair(no_valid.get(), train), {no_train.get(), valid}}) {
    CHECK(task->shared());
    CHECK(task->train_size() == 2);
    CHECK(task->valid_size() == 2);
    CHECK(texts(*task, false) == all);
    CHECK(texts(*task, true) == all);
  }
}

TEST_CASE("what is wrong in a file is said with its line", "[data][task][errors]") {
  CHECK(refusal_of("") == "is empty (0 bytes)");
  CHECK(refusal_of("a\tb\nab\n") == "line 2: 0 tabs, need one, between prompt and answer");
  CHECK(refusal_of("a\tb\tc\n") == "line 1: 2 tabs, need one, between prompt and answer");
  CHECK(refusal_of("a\tb\nb\t\n") == "line 2: the answer is empty");
  CHECK(refusal_of("a\tb\nb\t\r\n") == "line 2: the answer is empty");
  CHECK(refusal_of("\tb\n") == "line 1: the prompt is empty");
  CHECK(refusal_of("a\tb\n\nc\td\n") == "line 2: is empty");
  CHECK(refusal_of("a\tb\nc\t\xFF\n") == "line 2: text: byte 2 (0xFF) is not UTF-8");
  CHECK(refusal_of("a\t\xC3\n\xBC\tb\n") == "line 1: text: byte 2 (0xC3) is not UTF-8");
  CHECK(refusal_of("a\tb\nc\td\na\tx\n") == "line 3: 'a' has the answer 'x', but 'b' in line 1");
  CHECK(refusal_of("a\tb\n\n") == "different examples: 1, need at least 2");
  CHECK(refusal_of("a\tb\na\tb\n") == "different examples: 1, need at least 2");
  CHECK(refusal_of("\r\n\n") == "different examples: 0, need at least 2");
}

TEST_CASE("a batch is padded with newlines, and only what counts is a target",
          "[data][task][batch]") {
  const auto task = task_of("1\tgr\u00FC\n3\tx\n2\ty\n");
  const auto tokenizer = Tokenizer::from_tokens(TokenizerKind::character, task->alphabet());
  const auto encode = [&](std::string_view text) { return tokenizer.encode(text); };
  Rng rng(1);
  const Batch b = task_batch(*task, encode, false, 20, rng);
  REQUIRE(b.inputs.shape == Shape{20, 5});
  REQUIRE(b.targets.shape == Shape{20, 5});
  const auto id = [&](std::string_view c) { return encode(c).at(0); };
  const Id n = kIgnore, line = id("\n"), tab = id("\t");
  using Row = std::vector<Id>;
  const Row long_in{id("1"), tab, id("g"), id("r"), id("\u00FC")};
  const Row long_out{n, id("g"), id("r"), id("\u00FC"), line};
  const Row short_in{id("3"), tab, id("x"), line, line}, short_out{n, id("x"), line, n, n};
  int longs = 0;
  for (std::ptrdiff_t i = 0; i < 100; i += 5) {
    const Row in(b.inputs.values.begin() + i, b.inputs.values.begin() + i + 5);
    const Row out(b.targets.values.begin() + i, b.targets.values.begin() + i + 5);
    const bool is_long = in == long_in;
    longs += is_long;
    CHECK(in == (is_long ? long_in : short_in));
    CHECK(out == (is_long ? long_out : short_out));
  }
  CHECK((longs > 0 && longs < 20));
  CHECK(task_batch(*task, encode, true, 1, rng).targets.values == Row{n, id("y"), line, n, n});
}

TEST_CASE("induction's batch has 64 tokens a row", "[data][task][batch]") {
  const auto task = make_task("induction");
  const auto tokenizer = Tokenizer::from_tokens(TokenizerKind::character, task->alphabet());
  const auto encode = [&](std::string_view text) { return tokenizer.encode(text); };
  Rng rng(1), again(1);
  const Batch b = task_batch(*task, encode, false, 3, rng);
  REQUIRE(b.inputs.shape == Shape{3, 64});
  for (std::size_t row = 0; row < 3; ++row) {
    const Example e = task->train(again);
    const std::vector<Id> ids = encode(e.text);
    const Counted counted = repeats(e.text);
    for (std::size_t i = 0; i < 64; ++i) {
      CHECK(b.inputs.values[row * 64 + i] == ids[i]);
      CHECK(b.targets.values[row * 64 + i] == (counted[i + 1] != 0 ? ids[i + 1] : kIgnore));
    }
  }
}

TEST_CASE("a tokenizer that does not give one id a character is refused", "[data][task][errors]") {
  const auto task = task_of("1\t\u00FC\n3\t\u00FC\n");
  const auto bytes = [](std::string_view text) { return std::vector<Id>(text.size(), 0); };
  Rng rng(1);
  CHECK(message_of<ShapeError>([&] { task_batch(*task, bytes, false, 1, rng); }) ==
        "task: 5 tokens for 4 characters, need one each");
}
