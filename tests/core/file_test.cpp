#include "headwise/core/file.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <iterator>

#include "headwise/core/error.hpp"
#include "support/bytes.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace headwise;
using test::read_bytes;
using test::write_bytes;
namespace fs = std::filesystem;

namespace {

std::ptrdiff_t entries(const test::TemporaryFolder& folder) {
  return std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator());
}

}  // namespace

TEST_CASE("read_file gives every byte", "[core]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "x";
  constexpr std::size_t kMebi = 1 << 20;  // the size of a read, and its neighbours
  for (const std::size_t n :
       {std::size_t{0}, std::size_t{1}, kMebi - 1, kMebi, kMebi + 1, 3 * kMebi + 17}) {
    CAPTURE(n);
    std::string bytes(n, '\0');
    for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<char>(i * 31 + i / 256);
    write_bytes(path, bytes);
    CHECK(read_file(path) == bytes);
  }
  const std::string odd("a\r\nb\0\x1a\xff\n", 8);  // nothing is translated, nothing ends a text
  write_bytes(path, odd);
  CHECK(read_file(path) == odd);
}

TEST_CASE("read_file says what is wrong with a path", "[core][errors]") {
  const test::TemporaryFolder folder;
  const std::string missing = folder / "none", nested = folder / "none/deeper";
  CHECK_THROWS_WITH(read_file(missing), missing + ": no such file");
  CHECK_THROWS_WITH(read_file(nested), nested + ": no such file");
  CHECK_THROWS_WITH(read_file(folder.path()), folder.path() + ": is a folder, not a file");
  CHECK_THROWS_AS(read_file(""), DataError);

  const std::string closed = folder / "closed";
  write_bytes(closed, "x");
  fs::permissions(closed, fs::perms::none);
  if (::geteuid() != 0)  // root reads everything
    CHECK_THROWS_WITH(read_file(closed), closed + ": cannot be opened: Permission denied");
  const std::string below = closed + "/x";
  CHECK_THROWS_WITH(read_file(below), below + ": cannot be opened: Not a directory");
}

TEST_CASE("replace_file makes a file and replaces it", "[core]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "x";
  replace_file(path, "first, and longer");
  CHECK(read_bytes(path) == "first, and longer");
  replace_file(path, std::string_view("a\0b\r\n", 5));
  CHECK(read_bytes(path) == std::string("a\0b\r\n", 5));
  replace_file(path, "");
  CHECK(read_bytes(path).empty());

  const std::array<std::string_view, 4> parts{"one", "", " two", " three"};
  replace_file(path, parts);
  CHECK(read_bytes(path) == "one two three");
  CHECK(entries(folder) == 1);  // no temporary is left
}

TEST_CASE("replace_file works in the current folder", "[core]") {
  const test::TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  replace_file("x", "here");
  fs::current_path(before);
  CHECK(read_bytes(folder / "x") == "here");
  CHECK(entries(folder) == 1);
}

TEST_CASE("replace_file that cannot write says so and changes nothing", "[core][errors]") {
  const test::TemporaryFolder folder;
  const std::string nowhere = folder / "none/x";
  CHECK_THROWS_WITH(replace_file(nowhere, "new"),
                    nowhere + ": cannot be written: No such file or directory");
  CHECK(entries(folder) == 0);

  const std::string occupied = folder / "folder";
  fs::create_directory(occupied);
  CHECK_THROWS_WITH(replace_file(occupied, "new"),
                    occupied + ": cannot be written: Is a directory");
  CHECK(fs::is_directory(occupied));
  CHECK(entries(folder) == 1);  // the temporary is gone
  CHECK_THROWS_AS(replace_file(occupied, "new"), DataError);
}

TEST_CASE("a write that is cut short is not taken for the whole", "[core][errors]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "x";
  write_bytes(path, "old");
  // The system writes up to the limit, says so, and refuses only what comes after it.
  ::rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  ::rlimit limit = before;
  limit.rlim_cur = 1000;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &limit);
  const std::string error =
      test::message_of<DataError>([&] { replace_file(path, std::string(5000, 'x')); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(error == path + ": cannot be written: File too large");
  CHECK(read_bytes(path) == "old");
  CHECK(entries(folder) == 1);
}

TEST_CASE("a file written piece by piece is there when it is finished", "[core]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "x";
  write_bytes(path, "old");
  std::string expected;
  AtomicFile file(path);
  for (const std::size_t n : std::initializer_list<std::size_t>{1, 0, 65535, 1, 65536, 200000, 3}) {
    const std::string piece(n, static_cast<char>('a' + n % 26));
    file.write(piece);
    expected += piece;
  }
  CHECK(read_bytes(path) == "old");
  file.finish();
  CHECK(read_bytes(path) == expected);
  CHECK(entries(folder) == 1);
  CHECK_THROWS_AS(file.write("more"), ShapeError);
  CHECK_THROWS_AS(file.finish(), ShapeError);
}

TEST_CASE("a file that was never finished changes nothing", "[core]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "x";
  write_bytes(path, "old");
  {
    AtomicFile file(path);
    file.write(std::string(100000, 'n'));
    CHECK(entries(folder) == 2);
  }
  CHECK(read_bytes(path) == "old");
  CHECK(entries(folder) == 1);
}

TEST_CASE("a temporary that a killed writer left is removed, others stay", "[core][file]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "x";
  write_bytes(path, "old");
  write_bytes(folder / ".x.0123456789abcdef.tmp", "half");
  for (const char* name : {"x.tmp", ".x.tmp", ".x.0123456789abcde.tmp", ".x.0123456789abcdeg.tmp"})
    write_bytes(folder / name, "not ours");
  write_bytes(folder / ".y.0123456789abcdef.tmp", "another file's");
  fs::create_symlink(folder / "x.tmp", folder / ".x.fedcba9876543210.tmp");
  {
    AtomicFile running(path);  // its own stays while it is alive
    running.write("new");
    replace_file(path, "other");
    CHECK(entries(folder) == 8);
    running.finish();
  }
  CHECK(read_bytes(path) == "new");
  CHECK(entries(folder) == 7);
  Directory(folder.path()).remove_temporaries();
  CHECK_FALSE(fs::exists(folder / ".y.0123456789abcdef.tmp"));
  CHECK(entries(folder) == 6);
}

TEST_CASE("links keep, devices are written to", "[core][file]") {
  const test::TemporaryFolder folder;
  write_bytes(folder / "target", "old");
  std::filesystem::create_symlink(folder / "target", folder / "link");
  replace_file(folder / "link", "new");
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(read_file(folder / "target") == "new");
  replace_file("/dev/null", "lost");
  CHECK(std::filesystem::is_character_file("/dev/null"));
  std::filesystem::create_symlink("/dev/full", folder / "full");  // so that no mistake can hurt it
  CHECK_THROWS_AS(replace_file(folder / "full", "more"), DataError);
  CHECK_THROWS_WITH(replace_file(folder.path(), "x"),
                    folder.path() + ": cannot be written: Is a directory");
  std::filesystem::create_symlink(folder / "not yet", folder / "dangling");
  replace_file(folder / "dangling", "made");
  CHECK(std::filesystem::is_symlink(folder / "dangling"));
  CHECK(read_file(folder / "not yet") == "made");
}

TEST_CASE("a replaced file keeps its permissions, a new one follows the umask", "[core][file]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "x";
  const ::mode_t before = ::umask(0027);
  replace_file(path, "one");
  ::umask(before);
  const auto mode = [&] { return fs::status(path).permissions(); };
  CHECK(mode() == static_cast<fs::perms>(0640));
  for (const auto kept : {0600, 0606, 0755}) {
    fs::permissions(path, static_cast<fs::perms>(kept));
    replace_file(path, "two");
    CHECK(mode() == static_cast<fs::perms>(kept));
  }
}

TEST_CASE("what is read has a limit, and a path in a file names a regular file", "[core][file]") {
  const test::TemporaryFolder folder;
  write_bytes(folder / "x", "12345");
  CHECK(read_file(folder / "x", 5) == "12345");
  CHECK_THROWS_WITH(read_file(folder / "x", 4), folder / "x" + ": has 5 bytes, at most 4 are read");
  CHECK_THROWS_WITH(read_file("/dev/zero", 1000),
                    "/dev/zero: has more than 1000 bytes, at most 1000 are read");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const std::string& path : {folder / "pipe", std::string("/dev/zero")})
    CHECK_THROWS_WITH(InputFile(path, Accept::regular), path + ": is not a regular file");

  const InputFile file(folder / "x");
  CHECK(file.size() == 5);
  std::string part(3, ' ');
  file.read_at(2, part.data(), 3);
  CHECK(part == "345");
  CHECK_THROWS_WITH(file.read_at(3, part.data(), 3),
                    folder / "x" + ": ends at byte 5, 1 bytes too early");
}

TEST_CASE("a folder held open stays the same folder", "[core][file]") {
  const test::TemporaryFolder outer;
  const Directory folder = Directory::create(outer / "a/b/");
  CHECK_THROWS_WITH(Directory(outer / "c"), outer / "c" + ": no such folder");
  folder.replace("x", "one");
  fs::rename(outer / "a", outer / "moved");
  fs::create_directories(outer / "a/b");
  folder.replace("x", "two");
  folder.append("log", "line 1\n");
  folder.append("log", "line 2\n");
  CHECK(fs::is_empty(outer / "a/b"));
  CHECK(read_bytes(outer / "moved/b/x") == "two");
  CHECK(folder.read("log") == "line 1\nline 2\n");
  CHECK(folder.has("log"));
  folder.remove("log");
  folder.remove("log");
  CHECK_FALSE(folder.has("log"));
  CHECK_THROWS_WITH(folder.read("log"), folder.path("log") + ": no such file");
  for (const char* name : {"", ".", "..", "../x", "/x"})
    CHECK_THROWS_AS(folder.replace(name), DataError);
}

TEST_CASE("nothing outside a folder is written through a link in it", "[core][file]") {
  const test::TemporaryFolder outer;
  const Directory folder = Directory::create(outer / "run");
  write_bytes(outer / "precious", "the user's");
  for (const char* name : {"log", "state"})
    fs::create_symlink(outer / "precious", outer / fmt::format("run/{}", name));
  CHECK(folder.read("log") == "the user's");
  CHECK_THROWS_WITH(folder.append("log", "line\n"),
                    folder.path("log") +
                        ": is a symbolic link, and a folder's own files are not "
                        "written through one");
  folder.replace("state", "ours");
  CHECK(read_bytes(outer / "precious") == "the user's");
  CHECK(fs::is_regular_file(fs::symlink_status(outer / "run/state")));
  REQUIRE(::mkfifo((outer / "run/pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(folder.read("pipe"), folder.path("pipe") + ": is not a regular file");
  CHECK_THROWS_AS(folder.append("pipe", "line\n"), DataError);
}
