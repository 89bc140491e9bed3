// A folder that one process at a time may write to.
#pragma once

#include <string>

#include "headwise/core/file.hpp"

namespace headwise {

/// An exclusive lock on a folder, held until the object is destroyed or its process is gone. It is
/// an open-file-description lock of Linux on the folder's file kLockFile, so it also excludes
/// another FolderLock of this process, and processes on other machines that share the folder over
/// NFS. The file stays: where it is and is not locked, it says who last had the lock.
class FolderLock {
 public:
  static constexpr const char* kLockFile = ".headwise-lock";

  /// Throws DataError, naming process, host and time, when another has the lock; and when the lock
  /// file cannot be written.
  explicit FolderLock(const Directory& folder);

  /// Who has the lock of a folder, as in "process 12 on host a since ...": "" for none.
  static std::string holder(const Directory& folder);

  /// Why there is no lock: what the file system said that has none. "" if there is one.
  [[nodiscard]] const std::string& missing() const { return missing_; }

 private:
  Descriptor file_;
  std::string missing_;
};

}  // namespace headwise
