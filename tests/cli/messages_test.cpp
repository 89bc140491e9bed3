// What becomes of the program when its messages cannot be shown, and what a terminal gets.
#include <fcntl.h>

#include "cli/program.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace headwise::test;

namespace {

/// What a terminal of that kind gets from standard error of a shell command, and its exit code.
Result on_terminal(const std::string& term, const std::string& command) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  REQUIRE(::grantpt(terminal) == 0);
  REQUIRE(::unlockpt(terminal) == 0);
  const int program = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
  REQUIRE(program >= 0);
  Result r = shell(term + " " + command + " 2>/dev/fd/" + std::to_string(program));
  ::close(program);
  char bytes[4096];
  for (ssize_t n = 0; (n = ::read(terminal, bytes, sizeof bytes)) > 0;)
    r.err.append(bytes, static_cast<std::size_t>(n));
  ::close(terminal);
  return r;
}

const std::string kNowhere[] = {"2>/dev/full", "2>&-"};

}  // namespace

TEST_CASE("messages that cannot be shown are dropped, and exit codes stay", "[cli][errors]") {
  const Folder folder;
  const std::string run = trained(folder, "--layers 1 --context 4 --steps 2");
  for (const std::string& nowhere : kNowhere) {
    CAPTURE(nowhere);
    // Its note, that the prompt is longer than the context, is lost; its text is not.
    const Result said =
        shell("\"$H\" sample " + run + " --prompt 'the hen is' --tokens 3 " + nowhere);
    CHECK(said.code == 0);
    CHECK(said.out.starts_with("the hen is"));
    CHECK(shell("\"$H\" eval " + (folder / "none") + " " + nowhere).code == 1);
    CHECK(shell("\"$H\" eval --nonsense " + nowhere).code == 2);
  }
}

TEST_CASE("only a terminal that can redraw a line is sent escape sequences", "[cli]") {
  const std::string command = "\"$H\" gradcheck gelu";
  for (const char* plain : {"TERM=dumb", "TERM=", "env -u TERM"}) {
    CAPTURE(plain);
    const Result r = on_terminal(plain, command);
    CHECK(r.code == 0);
    CHECK(r.err.find('\033') == std::string::npos);
    CHECK(r.err.find("█") == std::string::npos);
  }
  const Result r = on_terminal("TERM=xterm", command);
  CHECK(r.code == 0);
  CHECK(mentions(r.err, {"\033[K"}));
}
