#include "headwise/core/folder_lock.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "support/catch.hpp"
#include "support/files.hpp"

using namespace headwise;
using test::mentions;
using test::message_of;
using test::TemporaryFolder;

namespace {

std::string refusal(const Directory& folder) {
  return message_of<DataError>([&] { const FolderLock lock(folder); });
}

/// A process that takes the lock, and tells when it has it.
pid_t locked_by_child(const Directory& folder) {
  int told[2];
  REQUIRE(pipe(told) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const FolderLock lock(folder);
    [[maybe_unused]] const auto n = write(told[1], "x", 1);
    pause();
    _exit(0);
  }
  char x = 0;
  CHECK(read(told[0], &x, 1) == 1);
  close(told[0]);
  close(told[1]);
  return child;
}

}  // namespace

TEST_CASE("a folder's lock excludes a second one, which is told by whom", "[core][lock]") {
  const TemporaryFolder folder;
  const Directory directory(folder.path());
  CHECK(FolderLock::holder(directory).empty());
  CHECK_FALSE(directory.has(FolderLock::kLockFile));  // asking leaves nothing
  std::optional<FolderLock> lock(directory);
  CHECK(lock->missing().empty());
  const std::string me = fmt::format("process {} on host ", ::getpid());
  CHECK(
      mentions(refusal(directory), {folder.path() + ": is in use by " + me, " since 20", " UTC"}));
  CHECK(FolderLock::holder(directory).starts_with(me));
  lock.reset();
  CHECK(FolderLock::holder(directory).empty());
  CHECK(refusal(directory) == "nothing was thrown");
}

TEST_CASE("a lock belongs to the folder, not to its path", "[core][lock]") {
  const TemporaryFolder folder;
  const Directory first = Directory::create(folder / "a");
  const FolderLock lock(first);
  std::filesystem::rename(folder / "a", folder / "b");
  CHECK(mentions(refusal(Directory(folder / "b")), {"is in use by process"}));
  CHECK(refusal(Directory::create(folder / "a")) == "nothing was thrown");
}

TEST_CASE("a lock dies with its process", "[core][lock]") {
  const TemporaryFolder folder;
  const Directory directory(folder.path());
  const pid_t child = locked_by_child(directory);
  const std::string process = fmt::format("process {}", child);
  CHECK(mentions(refusal(directory), {"is in use by " + process + " on host "}));
  // The holder is known from the lock itself, whatever stands in the file.
  {
    const Descriptor file(::open((folder / FolderLock::kLockFile).c_str(), O_WRONLY | O_TRUNC));
    REQUIRE(file.open());
  }
  CHECK(refusal(directory) == folder.path() + ": is in use by " + process);
  REQUIRE(kill(child, SIGKILL) == 0);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK(refusal(directory) == "nothing was thrown");
}

TEST_CASE("a lock file that is a link is refused, and what it leads to is left alone",
          "[core][lock][errors]") {
  const TemporaryFolder folder;
  replace_file(folder / "mine", "text");
  std::filesystem::create_symlink("mine", folder / FolderLock::kLockFile);
  CHECK(mentions(refusal(Directory(folder.path())),
                 {FolderLock::kLockFile, "the folder cannot be locked"}));
  CHECK(read_file(folder / "mine") == "text");
}
