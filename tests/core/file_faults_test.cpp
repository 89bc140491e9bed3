// Every system call that writes files fails once, or is the last before the process is killed.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <vector>

#include "headwise/core/file.hpp"
#include "support/bytes.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace headwise;
namespace fs = std::filesystem;

namespace {

/// What the calls below do while a test watches them.
struct WatchedCalls {
  bool on = false;
  int left = 0;   ///< calls before the one that fails or kills
  int error = 0;  ///< errno of the failure; 0: the process is killed before the call
  std::string failed{};
  std::vector<std::string> flushed{};  ///< fsync and renameat, in order
};
WatchedCalls watched_calls;

bool call_fails(const char* name) {
  WatchedCalls& w = watched_calls;
  if (!w.on) return false;
  if (std::string_view(name) == "fsync" || std::string_view(name) == "renameat")
    w.flushed.emplace_back(name);
  if (w.left-- != 0) return false;
  if (w.error == 0) ::kill(::getpid(), SIGKILL);
  w.failed = name;
  errno = w.error;
  return true;
}

template <class Function>
Function* next_of(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// f() while the call after `left` others fails; what it threw, and what was seen.
template <class F>
std::string with_fault(int left, int error, F f) {
  watched_calls = {.on = true, .left = left, .error = error};
  std::string message;
  try {
    f();
  } catch (const DataError& e) {
    message = e.what();
  }
  watched_calls.on = false;
  return message;
}

}  // namespace

// A program's own functions of these names come before the C library's.
#define HEADWISE_WATCHED(type, name, arguments, passed, exceptions) \
  extern "C" type name arguments exceptions {                       \
    static auto* const next = next_of<type arguments>(#name);       \
    return call_fails(#name) ? type{-1} : next passed;              \
  }
HEADWISE_WATCHED(ssize_t, write, (int fd, const void* from, size_t n), (fd, from, n), )
HEADWISE_WATCHED(int, fsync, (int fd), (fd), )
HEADWISE_WATCHED(int, close, (int fd), (fd), )
HEADWISE_WATCHED(int, fchmod, (int fd, mode_t mode), (fd, mode), noexcept)
HEADWISE_WATCHED(int, fchown, (int fd, uid_t user, gid_t group), (fd, user, group), noexcept)
HEADWISE_WATCHED(int, flock, (int fd, int how), (fd, how), noexcept)
HEADWISE_WATCHED(int, renameat, (int a, const char* from, int b, const char* to), (a, from, b, to),
                 noexcept)
#undef HEADWISE_WATCHED

extern "C" int openat(int folder, const char* path, int flags, ...) {
  static auto* const next = next_of<int(int, const char*, int, ...)>("openat");
  std::va_list more;
  va_start(more, flags);
  const auto mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : mode_t{0};
  va_end(more);
  return call_fails("openat") ? -1 : next(folder, path, flags, mode);
}

namespace {

/// A folder with one file, and the two ways to change it.
struct Changed {
  Changed() : directory(folder.path()) { reset(); }
  void reset() const {
    test::write_bytes(folder / "x", "old\n");
    fs::permissions(folder / "x", static_cast<fs::perms>(0640));
  }
  [[nodiscard]] std::string content() const { return test::read_bytes(folder / "x"); }
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator());
  }
  void replace() const { replace_file(folder / "x", text); }
  void append() const { directory.append("x", "line\n"); }

  test::TemporaryFolder folder;
  Directory directory;
  const std::string text = std::string(200000, 'n');
};

}  // namespace

TEST_CASE("a failing call leaves the old file or the new one, whole", "[core][file][faults]") {
  const Changed x;
  for (const bool append : {false, true})
    for (const int error : {ENOSPC, EIO, EINTR}) {
      const std::string after = append ? "old\nline\n" : x.text;
      for (int left = 0;; ++left) {
        x.reset();
        const std::string message =
            with_fault(left, error, [&] { append ? x.append() : x.replace(); });
        const std::string failed = watched_calls.failed;
        if (failed.empty()) {  // it has no more calls
          CHECK(left > (append ? 3 : 7));
          break;
        }
        CAPTURE(append, std::strerror(error), left, failed, message);
        const std::string content = x.content();
        REQUIRE((content == "old\n" || content == after));
        CHECK(x.files() == 1);
        CHECK(fs::status(x.folder / "x").permissions() == static_cast<fs::perms>(0640));
        // What ends well is done; what does not says which file and why.
        if (message.empty()) {
          CHECK(content == after);
          CHECK((error == EINTR || failed == "openat" || failed == "close" || failed == "flock" ||
                 failed == "fchown"));
        } else {
          CHECK(error != EINTR);
          CHECK(message.starts_with(x.folder / "x" + ": "));
          CHECK(message.ends_with(std::strerror(error)));
          const bool told_late = message.find("replaced, but") != message.npos || failed == "close";
          if (!told_late) CHECK(content == "old\n");
        }
      }
    }
}

TEST_CASE("bytes are on the disk before a name leads to them, then the name",
          "[core][file][faults]") {
  const Changed x;
  constexpr int kNone = 1000;
  CHECK(with_fault(kNone, EIO, [&] { x.replace(); }).empty());
  CHECK(watched_calls.flushed == std::vector<std::string>{"fsync", "renameat", "fsync"});
  CHECK(with_fault(kNone, EIO, [&] { x.append(); }).empty());
  CHECK(watched_calls.flushed == std::vector<std::string>{"fsync"});
  CHECK(with_fault(kNone, EIO, [&] { x.directory.append("new", "line\n"); }).empty());
  CHECK(watched_calls.flushed == std::vector<std::string>{"fsync", "fsync"});
}

TEST_CASE("a folder that cannot be flushed is told, one that has no such call is not",
          "[core][file][faults]") {
  const Changed x;
  int last_fsync = -1;  // the folder's comes after the file's
  for (int left = 0;; ++left) {
    with_fault(left, EINVAL, [&] { x.replace(); });
    if (watched_calls.failed.empty()) break;
    if (watched_calls.failed == "fsync") last_fsync = left;
  }
  REQUIRE(last_fsync > 0);
  CHECK(with_fault(last_fsync, EINVAL, [&] { x.replace(); }).empty());
  CHECK(with_fault(last_fsync, EIO, [&] { x.replace(); }) ==
        x.folder / "x" +
            ": replaced, but its folder could not be flushed to the disk: Input/output error");
  CHECK(x.content() == x.text);
}

TEST_CASE("a file is whole whenever its writer is killed", "[core][file][faults]") {
  const Changed x;
  int olds = 0, news = 0;
  for (int left = 0;; ++left) {
    x.reset();
    const ::pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      with_fault(left, 0, [&] { x.replace(); });
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    if (WIFEXITED(status)) break;  // it has no more calls
    const std::string content = x.content();
    REQUIRE((content == "old\n" || content == x.text));
    ++(content == "old\n" ? olds : news);
    CHECK(x.files() <= 2);  // the file and one temporary, which the next writer removes
  }
  CHECK(olds > 0);
  CHECK(news > 0);
  x.replace();
  CHECK(x.files() == 1);
}
