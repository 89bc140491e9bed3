#include "headwise/core/folder_lock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>

#include "core/system.hpp"
#include "headwise/core/error.hpp"
#include "headwise/core/printable.hpp"

namespace headwise {
namespace {

/// The first `length` bytes. A lock is as long as its process's number, so whoever is refused reads
/// from the lock itself who has it, which is never out of date as a file's content may be.
struct ::flock first_bytes(::off_t length) {
  struct ::flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_len = length;
  return range;
}

Descriptor open_lock(const Directory& folder, int flags) {
  return Descriptor(again([&] {
    return ::openat(folder.descriptor(), FolderLock::kLockFile,
                    O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags, 0666);
  }));
}

/// Who has the lock of an open lock file, "" for none.
std::string holder_of(int file) {
  struct ::flock range = first_bytes(1);
  if (::fcntl(file, F_OFD_GETLK, &range) != 0 || range.l_type == F_UNLCK) return "";
  const std::string process = fmt::format("process {}", range.l_len);
  std::array<char, 512> said{};  // by the holder, or, if it has not come to it yet, by the last one
  const ::ssize_t n = ::pread(file, said.data(), said.size(), 0);
  const std::string_view text(said.data(), n < 0 ? 0 : static_cast<std::size_t>(n));
  return text.starts_with(process + " ") ? printable(text.substr(0, text.find('\n'))) : process;
}

/// "process 12 on host a since 2026-12-01 01:30:12 UTC".
std::string introduction() {
  std::array<char, 256> host{}, now{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  const std::time_t seconds = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  const std::size_t n = std::strftime(now.data(), now.size(), "%Y-%m-%d %H:%M:%S", &utc);
  return fmt::format("process {} on host {} since {} UTC\n", ::getpid(), host.data(),
                     std::string_view(now.data(), n));
}

bool has_no_locks(int error) {
  return error == ENOLCK || error == ENOTSUP || error == EOPNOTSUPP || error == ENOSYS ||
         error == EINVAL;
}

}  // namespace

FolderLock::FolderLock(const Directory& folder) : file_(open_lock(folder, O_CREAT)) {
  const auto fail = [&] {
    throw DataError(fmt::format("{}: the folder cannot be locked: {}",
                                printable_path(folder.path(kLockFile)), system_error()));
  };
  if (!file_.open()) fail();
  struct ::flock range = first_bytes(::getpid());
  while (::fcntl(file_.get(), F_OFD_SETLK, &range) != 0) {
    if (has_no_locks(errno)) {
      missing_ = system_error();
      return;
    }
    if (errno != EAGAIN && errno != EACCES && errno != EINTR) fail();
    const std::string other = holder_of(file_.get());  // none: it has just let go
    require<DataError>(other.empty(), "{}: is in use by {}", printable_path(folder.path()), other);
  }
  const std::string text = introduction();
  (void)(::ftruncate(file_.get(), 0) == 0 && write_all(file_.get(), text));  // for messages only
}

std::string FolderLock::holder(const Directory& folder) {
  const Descriptor file = open_lock(folder, 0);
  return file.open() ? holder_of(file.get()) : "";
}

}  // namespace headwise
