#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>

#include "core/system.hpp"
#include "headwise/core/error.hpp"
#include "headwise/core/file.hpp"
#include "headwise/core/printable.hpp"

namespace headwise {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".tmp";
constexpr std::size_t kRandomDigits = 16;

/// Hexadecimal digits that no other process can guess, where the system has such numbers.
std::string random_digits() {
  static std::atomic<std::uint64_t> count = 0;
  std::uint64_t x = 0;
  if (again([&] { return ::getrandom(&x, sizeof x, GRND_NONBLOCK); }) !=
      static_cast<::ssize_t>(sizeof x)) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    x = (static_cast<std::uint64_t>(now) ^ static_cast<std::uint64_t>(::getpid()) << 40) + ++count;
  }
  return fmt::format("{:016x}", x);
}

/// What the temporaries of a file begin with; the name is cut so that theirs is not too long.
std::string temporary_prefix(const std::string& name) {
  constexpr std::size_t kMost = 255 - 2 - kRandomDigits - kSuffix.size();
  return "." + name.substr(0, kMost) + ".";
}

/// Whether `name` is a temporary's; with a prefix, one of that file's.
bool is_temporary(std::string_view name, std::string_view prefix) {
  if (!name.starts_with('.') || !name.ends_with(kSuffix)) return false;
  name.remove_suffix(kSuffix.size());
  if (name.size() < kRandomDigits + 2 || name[name.size() - kRandomDigits - 1] != '.') return false;
  const std::string_view digits = name.substr(name.size() - kRandomDigits);
  return digits.find_first_not_of("0123456789abcdef") == digits.npos &&
         (prefix.empty() || name.substr(0, name.size() - kRandomDigits) == prefix);
}

/// Removes temporaries whose writer is gone: it held a lock, which dies with its process. Where the
/// folder cannot be listed or a file system has no locks, they stay.
void remove_stale(int folder, std::string_view prefix) {
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return;
  ::DIR* const list = ::fdopendir(copy);
  if (list == nullptr) {
    ::close(copy);
    return;
  }
  while (const ::dirent* entry = ::readdir(list)) {
    if (!is_temporary(entry->d_name, prefix)) continue;
    const Descriptor file(
        ::openat(folder, entry->d_name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct ::stat status {};
    if (file.open() && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
        ::flock(file.get(), LOCK_EX | LOCK_NB) == 0)
      ::unlinkat(folder, entry->d_name, 0);
  }
  ::closedir(list);
}

/// Gives the file at `fd` owner, group and permissions of the one it will replace. An owner or
/// group that this user may not give stays its own. False on an error that errno says; a file
/// system without permissions is none.
bool take_permissions(int fd, const struct ::stat& old) {
  ::mode_t mode = old.st_mode & 0777;
  if (::fchown(fd, old.st_uid, old.st_gid) != 0 &&
      ::fchown(fd, static_cast<::uid_t>(-1), old.st_gid) != 0)
    mode = (mode & 0707) | ((mode & 07) << 3);  // another group: it may what all others may
  return again([&] { return ::fchmod(fd, mode); }) == 0 || errno == EPERM || errno == ENOTSUP ||
         errno == ENOSYS;
}

/// Where a path leads in the end; a link to nothing leads to what it names.
fs::path behind_links(fs::path path) {
  std::error_code none;
  for (int links = 0; links < 40 && fs::is_symlink(path, none); ++links)
    path = path.parent_path() / fs::read_symlink(path, none);
  return path;
}

/// A folder opened to write files in it. One that may not be listed cannot be read, only passed.
int open_folder(const std::string& path) {
  const std::string& name = path.empty() ? "." : path;
  constexpr int kFlags = O_DIRECTORY | O_CLOEXEC;
  const int fd = again([&] { return ::open(name.c_str(), O_RDONLY | kFlags); });
  if (fd >= 0 || errno != EACCES) return fd;
  return again([&] { return ::open(name.c_str(), O_PATH | kFlags); });
}

}  // namespace

bool sync_folder(int folder) {
  if (again([&] { return ::fsync(folder); }) == 0) return true;
  // EBADF: a folder that may only be passed, not read (O_PATH).
  return errno == EINVAL || errno == ENOTSUP || errno == ENOSYS || errno == EBADF;
}

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  std::error_code none;
  const fs::file_status status = fs::status(path_, none);
  require<DataError>(!fs::is_directory(status), "{}: cannot be written: Is a directory",
                     printable_path(path_));
  if (fs::exists(status) && !fs::is_regular_file(status)) {  // a device, a pipe
    file_ =
        Descriptor(again([&] { return ::open(path_.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC); }));
    if (!file_.open()) fail();
    return;
  }
  const fs::path target = behind_links(path_);
  name_ = target.filename().string();
  folder_ = std::make_shared<Descriptor>(open_folder(target.parent_path().string()));
  if (!folder_->open()) fail();
  open_temporary();
}

AtomicFile::AtomicFile(const Directory& folder, const std::string& name)
    : path_(folder.path(name)), name_(name), folder_(folder.folder_) {
  open_temporary();
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::open_temporary() {
  struct ::stat old {};
  const bool replaces = ::fstatat(folder_->get(), name_.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0 &&
                        S_ISREG(old.st_mode);
  if (!replaces && old.st_nlink > 0 && S_ISDIR(old.st_mode)) {
    errno = EISDIR;
    fail();
  }
  const std::string prefix = temporary_prefix(name_);
  remove_stale(folder_->get(), prefix);
  for (int tries = 0; tries < 100; ++tries) {
    temporary_ = prefix + random_digits() + std::string(kSuffix);
    // The permissions of a replaced file come before the first byte; a new file has the umask's.
    file_ = Descriptor(again([&] {
      return ::openat(folder_->get(), temporary_.c_str(),
                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, replaces ? 0600 : 0666);
    }));
    if (!file_.open() && errno == EEXIST) continue;
    if (!file_.open()) fail();
    // Between opening and locking a process that cleans up may take it for a dead one's.
    struct ::stat made {};
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) continue;
    if (::fstat(file_.get(), &made) != 0) fail();
    if (made.st_nlink == 0) continue;
    if (replaces && !take_permissions(file_.get(), old)) fail();
    return;
  }
  fail();
}

void AtomicFile::discard() {
  if (!file_.open()) return;
  if (folder_ != nullptr) ::unlinkat(folder_->get(), temporary_.c_str(), 0);
  (void)file_.close();
}

void AtomicFile::fail() {
  const std::string reason = system_error();
  discard();
  throw DataError(fmt::format("{}: cannot be written: {}", printable_path(path_), reason));
}

void AtomicFile::flush() {
  if (!write_all(file_.get(), waiting_)) fail();
  waiting_.clear();
}

void AtomicFile::write(std::string_view bytes) {
  require(file_.open(), "{}: it is finished, or could not be written", printable_path(path_));
  constexpr std::size_t kWait = 1 << 16;  // small pieces go to the system together
  if (waiting_.size() + bytes.size() > kWait) flush();
  if (bytes.size() < kWait)
    waiting_ += bytes;
  else if (!write_all(file_.get(), bytes))
    fail();
}

void AtomicFile::finish() {
  require(file_.open(), "{}: it is finished, or could not be written", printable_path(path_));
  flush();
  if (folder_ == nullptr) {
    if (!file_.close()) fail();
    return;
  }
  if (again([&] { return ::fsync(file_.get()); }) != 0) fail();
  // A network file system may tell of a failed write at a close only: close a copy while the lock,
  // which belongs to both, is held.
  Descriptor copy(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.open() || !copy.close()) fail();
  const int folder = folder_->get();
  if (again([&] { return ::renameat(folder, temporary_.c_str(), folder, name_.c_str()); }) != 0)
    fail();
  (void)file_.close();
  const bool synced = sync_folder(folder);  // before its errno is read
  require<DataError>(synced, "{}: replaced, but its folder could not be flushed to the disk: {}",
                     printable_path(path_), system_error());
}

void Directory::remove_temporaries() const { remove_stale(descriptor(), ""); }

}  // namespace headwise
