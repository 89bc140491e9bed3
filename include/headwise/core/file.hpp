// Files, whole: read with errors that name the path, and replaced in one step.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace headwise {

/// The bytes of a file. Throws DataError, each with its own text, for a missing path, a folder, or
/// a file that cannot be read.
std::string read_file(const std::string& path);

/// Replaces `path` by the concatenation of `parts` in one step: written to "<path>.tmp" in the same
/// folder, flushed to the disk, then renamed. Killed at any moment, the path holds the old bytes or
/// the new ones, complete. Throws DataError and leaves the old file alone when it cannot.
void replace_file(const std::string& path, std::span<const std::string_view> parts);
void replace_file(const std::string& path, std::string_view text);

/// The same for what is too large to be held: bytes are written as they come, and `path` is
/// replaced by finish(). Without it nothing changes and nothing is left. Each throws DataError. Of
/// a symbolic link the target is replaced; to a device or a pipe bytes are written as they come.
class FileReplacement {
 public:
  explicit FileReplacement(std::string path);
  ~FileReplacement();
  FileReplacement(const FileReplacement&) = delete;
  FileReplacement& operator=(const FileReplacement&) = delete;

  void write(std::string_view bytes);
  void finish();

 private:
  [[noreturn]] void fail();
  void flush();
  void discard();

  std::string path_, temporary_, waiting_;
  int fd_ = -1;
  bool in_place_ = false;
};

}  // namespace headwise
