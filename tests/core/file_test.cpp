#include "headwise/core/file.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <thread>

#include "headwise/core/error.hpp"
#include "headwise/core/random.hpp"
#include "headwise/core/safetensors.hpp"
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

TEST_CASE("a full disk leaves the old file as it was", "[core][errors]") {
  if (!fs::exists("/dev/full")) return;
  const test::TemporaryFolder folder;
  const std::string path = folder / "x";
  write_bytes(path, "old");
  fs::create_symlink("/dev/full", path + ".tmp");  // every write there fails as on a full disk
  CHECK_THROWS_WITH(replace_file(path, "new"),
                    path + ": cannot be written: No space left on device");
  CHECK(read_bytes(path) == "old");
  CHECK(entries(folder) == 1);
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
  FileReplacement file(path);
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
    FileReplacement file(path);
    file.write(std::string(100000, 'n'));
    CHECK(entries(folder) == 2);
  }
  CHECK(read_bytes(path) == "old");
  CHECK(entries(folder) == 1);
}

TEST_CASE("a temporary that a killed writer left is overwritten", "[core]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "x";
  write_bytes(path, "old");
  write_bytes(path + ".tmp", "half of something much longer than what comes next");
  CHECK(read_file(path) == "old");
  replace_file(path, "new");
  CHECK(read_bytes(path) == "new");
  CHECK(entries(folder) == 1);
}

TEST_CASE("a file is whole whenever its writer is killed", "[core]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  constexpr Index kElements = 1 << 18;  // 1 MiB: long enough to be killed in its middle
  std::array<TensorFileWriter, 2> writers;
  for (std::size_t i = 0; i < 2; ++i) {
    // Different lengths too, so that the one written over the other would show.
    const auto n = kElements - 1000 * static_cast<Index>(i);
    writers[i].add("a", Tensor<float>::full({n}, static_cast<float>(i)));
    writers[i].add("z", Tensor<float>::full({n}, static_cast<float>(i)));
  }
  writers[0].save(path);

  Rng rng(68);
  std::array<int, 2> found{};
  for (int round = 0; round < 60; ++round) {
    const ::pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0)
      for (unsigned i = 1;; ++i) try {
          writers[i % 2].save(path);
        } catch (...) {
          ::_exit(1);
        }
    std::this_thread::sleep_for(std::chrono::microseconds(rng.below(20000)));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status));  // it did not stop by itself

    const TensorFile file(path);
    const Tensor<float> a = file.tensor<float>("a"), z = file.tensor<float>("z");
    const float value = a.data()[0];
    REQUIRE((value == 0 || value == 1));
    REQUIRE(a.size() == kElements - 1000 * static_cast<Index>(value));
    REQUIRE(z.size() == a.size());
    for (const Tensor<float>& x : {a, z})
      REQUIRE(std::count(x.data(), x.data() + x.size(), value) == x.size());
    ++found[static_cast<std::size_t>(value)];
    REQUIRE(entries(folder) <= 2);  // the file and one temporary
  }
  CHECK(found[0] > 0);
  CHECK(found[1] > 0);
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
}
