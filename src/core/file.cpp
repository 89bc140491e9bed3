#include "headwise/core/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "core/system.hpp"
#include "headwise/core/error.hpp"
#include "headwise/core/memory.hpp"
#include "headwise/core/printable.hpp"

namespace headwise {
namespace {

/// Half of the memory that is left, in bytes: what is read whole must fit twice.
std::size_t memory_limit() {
  constexpr double kMost = 1e18;  // where nothing says how much there is
  return static_cast<std::size_t>(std::min(kMost, available_memory()) / 2);
}

}  // namespace

bool Descriptor::close() {
  if (fd_ < 0) return true;
  // Linux closes the descriptor even when a signal interrupts the call.
  return ::close(std::exchange(fd_, -1)) == 0 || errno == EINTR;
}

std::string system_error() { return std::generic_category().message(errno); }

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ::ssize_t n = again([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (n == 0) errno = EIO;  // no progress, no reason given
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

InputFile::InputFile(const std::string& path, Accept accept)
    : InputFile(AT_FDCWD, path, path, accept) {}

InputFile::InputFile(int folder, const std::string& name, std::string path, Accept accept)
    : InputFile(Descriptor(again([&] {
                  // Without O_NONBLOCK the opening of a pipe waits for its writer, as it should for
                  // a user's.
                  const int wait = accept == Accept::regular ? O_NONBLOCK : 0;
                  return ::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | wait);
                })),
                std::move(path), accept) {}

InputFile InputFile::standard_input() {
  return {Descriptor(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)), "standard input", Accept::any};
}

InputFile::InputFile(Descriptor file, std::string path, Accept accept)
    : path_(std::move(path)), file_(std::move(file)) {
  const std::string shown = printable_path(path_);
  require<DataError>(file_.open() || errno != ENOENT, "{}: no such file", shown);
  require<DataError>(file_.open(), "{}: cannot be opened: {}", shown, system_error());
  struct ::stat status {};
  const bool known = ::fstat(file_.get(), &status) == 0;  // before its errno is read
  require<DataError>(known, "{}: cannot be read: {}", shown, system_error());
  require<DataError>(!S_ISDIR(status.st_mode), "{}: is a folder, not a file", shown);
  regular_ = S_ISREG(status.st_mode);
  require<DataError>(regular_ || accept == Accept::any, "{}: is not a regular file", shown);
  if (regular_) size_ = static_cast<std::uint64_t>(status.st_size);
}

void InputFile::read_at(std::uint64_t offset, void* to, std::size_t bytes) const {
  for (char* at = static_cast<char*>(to); bytes > 0;) {
    const ::ssize_t n =
        again([&] { return ::pread(file_.get(), at, bytes, static_cast<::off_t>(offset)); });
    require<DataError>(n >= 0, "{}: cannot be read: {}", printable_path(path_), system_error());
    require<DataError>(n > 0, "{}: ends at byte {}, {} bytes too early", printable_path(path_),
                       offset, bytes);
    at += n;
    offset += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
}

std::string InputFile::read(std::size_t most) const {
  const std::size_t memory = memory_limit();
  const auto check = [&](std::uint64_t bytes) {
    const bool few = bytes <= most, fits = bytes <= memory;
    if (few && fits) return;
    throw DataError(fmt::format("{}: has {}{} bytes, {}", printable_path(path_),
                                regular_ ? "" : "more than ",
                                regular_ ? bytes : std::min(most, memory),
                                few ? "which half of the free memory does not hold"
                                    : fmt::format("at most {} are read", most)));
  };
  check(size_);
  std::string bytes;
  // One more than the file has, so that its end is seen without growing.
  bytes.resize(static_cast<std::size_t>(size_) + 1);
  for (std::size_t used = 0;;) {
    constexpr std::size_t kStep = 1 << 20;
    if (bytes.size() == used) bytes.resize(std::max(bytes.capacity(), used + kStep));
    const ::ssize_t n =
        again([&] { return ::read(file_.get(), bytes.data() + used, bytes.size() - used); });
    require<DataError>(n >= 0, "{}: cannot be read: {}", printable_path(path_), system_error());
    used += static_cast<std::size_t>(n);
    check(used);
    if (n == 0) {
      bytes.resize(used);
      return bytes;
    }
  }
}

std::string read_file(const std::string& path, std::size_t most) {
  return InputFile(path).read(most);
}

void replace_file(const std::string& path, std::span<const std::string_view> parts) {
  AtomicFile file(path);
  for (const std::string_view part : parts) file.write(part);
  file.finish();
}

void replace_file(const std::string& path, std::string_view text) {
  replace_file(path, std::span<const std::string_view>(&text, 1));
}

}  // namespace headwise
