#include "headwise/core/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "headwise/core/error.hpp"

namespace headwise {
namespace {

/// An open file descriptor, closed when it goes out of scope.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : fd_(::open(path.c_str(), flags, 0666)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool open() const { return fd_ >= 0; }

 private:
  int fd_;
};

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ::ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

std::string read_file(const std::string& path) {
  const Descriptor file(path, O_RDONLY | O_CLOEXEC);
  require<DataError>(file.open() || errno != ENOENT, "{}: no such file", path);
  require<DataError>(file.open(), "{}: cannot be opened: {}", path, std::strerror(errno));
  struct ::stat status {};
  require<DataError>(::fstat(file.get(), &status) == 0 && !S_ISDIR(status.st_mode),
                     "{}: is a folder, not a file", path);
  std::string bytes;
  // One more than the file has, so that its end is seen without growing.
  if (S_ISREG(status.st_mode)) bytes.resize(static_cast<std::size_t>(status.st_size) + 1);
  for (std::size_t used = 0;;) {
    constexpr std::size_t kStep = 1 << 20;
    if (bytes.size() == used) bytes.resize(std::max(bytes.capacity(), used + kStep));
    const ::ssize_t n = ::read(file.get(), bytes.data() + used, bytes.size() - used);
    if (n < 0 && errno == EINTR) continue;
    require<DataError>(n >= 0, "{}: cannot be read: {}", path, std::strerror(errno));
    used += static_cast<std::size_t>(n);
    if (n == 0) {
      bytes.resize(used);
      return bytes;
    }
  }
}

FileReplacement::FileReplacement(std::string path) : path_(std::move(path)) {
  namespace fs = std::filesystem;
  std::error_code none;
  if (fs::is_symlink(path_, none))  // what it points to is replaced, not the link
    if (const fs::path target = fs::weakly_canonical(path_, none); !none) path_ = target.string();
  const fs::file_status status = fs::status(path_, none);
  require<DataError>(!fs::is_directory(status), "{}: cannot be written: Is a directory", path_);
  in_place_ = fs::exists(status) && !fs::is_regular_file(status);  // a device, a pipe
  temporary_ = in_place_ ? path_ : path_ + ".tmp";
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) fail();
}

FileReplacement::~FileReplacement() { discard(); }

void FileReplacement::discard() {
  if (fd_ < 0) return;
  ::close(fd_);
  fd_ = -1;
  if (!in_place_) ::unlink(temporary_.c_str());
}

void FileReplacement::fail() {
  const int reason = errno;
  discard();
  throw DataError(fmt::format("{}: cannot be written: {}", path_, std::strerror(reason)));
}

void FileReplacement::flush() {
  if (!write_all(fd_, waiting_)) fail();
  waiting_.clear();
}

void FileReplacement::write(std::string_view bytes) {
  require(fd_ >= 0, "{}: it is finished, or could not be written", path_);
  constexpr std::size_t kWait = 1 << 16;  // small pieces go to the system together
  if (waiting_.size() + bytes.size() > kWait) flush();
  if (bytes.size() < kWait)
    waiting_ += bytes;
  else if (!write_all(fd_, bytes))
    fail();
}

void FileReplacement::finish() {
  require(fd_ >= 0, "{}: it is finished, or could not be written", path_);
  flush();
  if (in_place_) {
    ::close(fd_);
    fd_ = -1;
    return;
  }
  if (::fsync(fd_) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
  ::close(fd_);
  fd_ = -1;
  std::string folder = std::filesystem::path(path_).parent_path().string();
  const Descriptor directory(folder.empty() ? "." : folder, O_RDONLY | O_CLOEXEC);
  if (directory.open()) ::fsync(directory.get());  // so that the new name survives a power cut too
}

void replace_file(const std::string& path, std::span<const std::string_view> parts) {
  FileReplacement file(path);
  for (const std::string_view part : parts) file.write(part);
  file.finish();
}

void replace_file(const std::string& path, std::string_view text) {
  replace_file(path, std::span<const std::string_view>(&text, 1));
}

}  // namespace headwise
