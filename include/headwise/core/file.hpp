// Files: read with errors that name the path, and replaced atomically; and a folder held open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace headwise {

/// A file descriptor of the system, closed with its owner. -1: none.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { (void)close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool open() const { return fd_ >= 0; }
  /// Whether the system closed it without an error, which is in errno otherwise.
  [[nodiscard]] bool close();

 private:
  int fd_;
};

/// What a path may lead to. A user may type a pipe or a device; a path that a file names is
/// `regular`: a pipe would wait and a device may have no end.
enum class Accept { any, regular };

constexpr std::size_t kAnySize = std::numeric_limits<std::size_t>::max();

/// A file open for reading. Symbolic links are followed.
class InputFile {
 public:
  /// Throws DataError, each with its own text, for a missing path, a folder, a path that `accept`
  /// excludes, or a file that cannot be opened.
  explicit InputFile(const std::string& path, Accept accept = Accept::any);
  /// What the process was given to read, as the path "standard input".
  static InputFile standard_input();

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Bytes of a regular file when it was opened; 0 for a pipe or a device.
  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// The `bytes` bytes from `offset` on. Throws DataError when the file ends before.
  void read_at(std::uint64_t offset, void* to, std::size_t bytes) const;
  /// All bytes. Throws DataError for more than `most`, or more than half of the machine's memory:
  /// at once for a regular file, a pipe or a device when so many were read.
  [[nodiscard]] std::string read(std::size_t most = kAnySize) const;

 private:
  friend class Directory;
  InputFile(int folder, const std::string& name, std::string path, Accept accept);
  InputFile(Descriptor file, std::string path, Accept accept);

  std::string path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
  bool regular_ = false;
};

/// InputFile(path).read(most).
std::string read_file(const std::string& path, std::size_t most = kAnySize);

class Directory;

/// A file that is replaced in one step: bytes go to a temporary in the same folder, and finish()
/// flushes it to the disk and renames it. Killed at any moment, the path holds the old bytes or the
/// new ones, complete. Without finish() nothing changes and nothing is left. Each throws DataError.
///
/// The temporary ".NAME.RANDOM.tmp" is new, never an existing file or link. One that a killed
/// process left is removed by the next AtomicFile of that name. A replaced file keeps its
/// permissions and, where the system allows, owner and group.
class AtomicFile {
 public:
  /// Of a symbolic link the target is replaced. To a device or a pipe bytes are written as they
  /// come.
  explicit AtomicFile(const std::string& path);
  /// A file of that folder, wherever the folder is moved. A symbolic link is itself replaced.
  AtomicFile(const Directory& folder, const std::string& name);
  ~AtomicFile();
  AtomicFile(AtomicFile&&) = default;

  [[nodiscard]] const std::string& path() const { return path_; }
  void write(std::string_view bytes);
  /// When only the folder cannot be flushed, the file is replaced and the error says so.
  void finish();

 private:
  [[noreturn]] void fail();
  void open_temporary();
  void flush();
  void discard();

  std::string path_, name_, temporary_, waiting_;
  std::shared_ptr<const Descriptor> folder_;  // null: a device or a pipe
  Descriptor file_;
};

/// Replaces `path` by `text`, or by the concatenation of `parts`, as AtomicFile does.
void replace_file(const std::string& path, std::span<const std::string_view> parts);
void replace_file(const std::string& path, std::string_view text);

/// A folder held open: its files are found by name inside it, also after the folder was moved or
/// another one took its path. For files that belong to the folder: nothing outside is written
/// through a link. Names have no "/". Copies share the descriptor. Each throws DataError.
class Directory {
 public:
  /// An existing folder.
  explicit Directory(const std::string& path);
  /// The same; it and the folders above it are made where they are missing.
  static Directory create(const std::string& path);

  /// As it was given; for messages.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string path(const std::string& name) const;
  /// For locks.
  [[nodiscard]] int descriptor() const { return folder_->get(); }

  /// Whether there is anything of that name, also a link to nothing.
  [[nodiscard]] bool has(const std::string& name) const;
  /// A regular file of that name, or the one a link of that name leads to.
  [[nodiscard]] InputFile file(const std::string& name) const;
  [[nodiscard]] std::string read(const std::string& name, std::size_t most = kAnySize) const {
    return file(name).read(most);
  }
  /// AtomicFile of that name: finish() replaces it.
  [[nodiscard]] AtomicFile replace(const std::string& name) const { return {*this, name}; }
  void replace(const std::string& name, std::string_view text) const;
  /// Adds bytes to a file and flushes them to the disk; the file is made where it is missing. On an
  /// error it has its old length. A symbolic link is refused.
  void append(const std::string& name, std::string_view bytes) const;
  /// Removes a file; no error when there is none.
  void remove(const std::string& name) const;
  /// Removes the temporaries of AtomicFile whose processes are gone.
  void remove_temporaries() const;

 private:
  friend class AtomicFile;

  std::string path_;
  std::shared_ptr<const Descriptor> folder_;
};

}  // namespace headwise
