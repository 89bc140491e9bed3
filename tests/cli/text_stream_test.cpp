#include "cli/text_stream.hpp"

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "cli/program.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

/// What a stream gives for pieces and their end.
std::string streamed(bool terminal, const std::vector<std::string>& pieces) {
  cli::TextStream stream(terminal);
  std::string out;
  for (const std::string& piece : pieces) out += stream.take(piece);
  return out + stream.end();
}

/// What a terminal gets from a shell command in which $H is the program.
std::string on_terminal(const std::string& command) {
  int terminal = -1;
  const ::pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  REQUIRE(child >= 0);
  if (child == 0) {
    ::setenv("H", HEADWISE_PROGRAM, 1);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  std::string out;
  char buffer[4096];
  for (::ssize_t n = 0; (n = ::read(terminal, buffer, sizeof buffer)) > 0;)
    out.append(buffer, static_cast<std::size_t>(n));
  ::close(terminal);
  ::waitpid(child, nullptr, 0);
  return out;
}

}  // namespace

TEST_CASE("a stream holds back half a character, and ends it with U+FFFD", "[cli]") {
  cli::TextStream stream(false);
  CHECK(stream.take("a\xE2") == "a");
  CHECK(stream.take("\x82") == "");
  CHECK(stream.take("\xAC!") == "\xE2\x82\xAC!");
  CHECK(stream.take("\xF0\x9F\x98") == "");
  CHECK(stream.end() == "\xEF\xBF\xBD");
  CHECK(stream.end() == "");
  for (const bool terminal : {false, true}) {
    CHECK(streamed(terminal, {"a", "\xC3"}) == "a\xEF\xBF\xBD");
    CHECK(streamed(terminal, {"\xC3", "\xBC"}) == "\xC3\xBC");
    CHECK(streamed(terminal, {"a\tb\n\\"}) == "a\tb\n\\");
  }
}

TEST_CASE("what a terminal would obey is shown; a pipe gets the bytes", "[cli]") {
  const std::string odd = "a\x1B[31m\r\x07 \xC2\x9B \xFFz \xC3 \xE2\x80\xAE";
  CHECK(streamed(false, {odd}) == odd);
  CHECK(streamed(true, {odd}) == "a\\x1b[31m\\r\\x07 \\u009b \\xffz \\xc3 \\u202e");
}

TEST_CASE("sample writes to a terminal and to a pipe what each can take", "[cli]") {
  const Folder folder;
  const std::string bytes = folder / "bytes";
  const std::string train =
      "train --threads 1 --layers 1 --heads 2 --width 8 --context 8 --batch 2"
      " --eval-batches 1 --steps 1 --out ";
  REQUIRE(headwise_program(train + bytes + " --tokenizer byte").code == 0);
  // Untrained, nearly every byte is as likely as every other.
  const std::string sample = "sample " + bytes + " --threads 1 --tokens 300 --seed 3";
  const Result piped = headwise_program(sample);
  REQUIRE(piped.code == 0);
  const auto is_control = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t';
  };
  CHECK(std::any_of(piped.out.begin(), piped.out.end(), is_control));
  CHECK_THAT(piped.err, Catch::Contains("note: the prompt is empty") && Catch::Contains("\"\\n\""));
  const std::string seen = on_terminal("\"$H\" " + sample + " 2>/dev/null");
  CHECK(seen.size() > 300);
  CHECK_THAT(seen, Catch::Contains("\\x"));
  CHECK(std::none_of(seen.begin(), seen.end(), is_control));
  const auto line = lines(headwise_program(sample + " --json --prompt ''").out).at(0);
  CHECK(line["after"] == "\n");
  CHECK(!lines(headwise_program(sample + " --json --prompt a").out).at(0).contains("after"));

  // A vocabulary without a line's end begins with its first token.
  const std::string ab = folder / "ab";
  REQUIRE(headwise_program(train + ab + " --data " + folder.file("ab.txt", "babababababababababa"))
              .code == 0);
  CHECK_THAT(headwise_program("sample " + ab + " --tokens 1").err,
             Catch::Contains("the token \"a\""));
  CHECK_THAT(headwise_program("train --resume " + ab + " --steps 2 --sample-every 1").out,
             Catch::Contains("--- at step 2, after \"a\"\n"));
}

TEST_CASE("a file of bytes is trained on with a note of what it is", "[cli]") {
  const Folder folder;
  std::string gzip = "\x1F\x8B\x08";
  for (int i = 0; i < 200; ++i) gzip += static_cast<char>(i * 37);
  const std::string file = folder.file("text.gz", gzip);
  const auto train = [&](const std::string& tokenizer) {
    return headwise_program("train --steps 1 --data " + file + " --tokenizer " + tokenizer +
                            " --out " + (folder / tokenizer) + kTiny);
  };
  const Result bytes = train("byte");
  CHECK(bytes.code == 0);
  CHECK_THAT(bytes.out,
             Catch::Contains("it looks like gzip, not like a text; each byte is a token"));
  const Result characters = train("char");
  CHECK(characters.code == 1);
  CHECK(characters.err == "headwise: " + file + ": text: is not UTF-8; it looks like gzip\n");
  CHECK(!std::filesystem::exists(folder / "char"));
  std::string zeros = "one two three four ";
  zeros += '\0';
  for (int i = 0; i < 5; ++i) zeros += zeros;
  const Result kept = headwise_program("train --steps 1 --data " + folder.file("zeros", zeros) +
                                       " --out " + (folder / "z") + kTiny);
  CHECK(kept.code == 0);
  CHECK_THAT(kept.out, Catch::Contains("the text has zero bytes (U+0000); they are kept"));
}
