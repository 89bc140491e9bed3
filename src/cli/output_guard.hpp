// Keeps what a command writes off what it reads, and off files that headwise did not write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headwise/train/run.hpp"

namespace headwise::cli {

/// What an output is. A text that `data` writes has nothing that tells it from a user's.
enum class Output { page, study, patterns, text };

inline constexpr const char* kForceHelp =
    "replace files that headwise did not write; without it only its own earlier output";

/// The one gate that every path a command writes to passes, before any work. A file that is there
/// is replaced only if the command reads it by no option (compared by device and inode, so another
/// link is the same file) and it is empty, or an earlier output of the same kind, which its content
/// tells. Devices, pipes and what standard output goes to are not replaced, so they always pass.
/// With `force` any file is replaced, but none of a run and none that another option writes.
class OutputGuard {
 public:
  explicit OutputGuard(bool force) : force_(force) { note_input("/dev/stdin", false); }

  /// A file that the command reads; "" and "-" are none.
  void reads(const std::string& path) { note_input(path, false); }
  /// A run that it reads: the files in its folder, and the text or task it was trained on.
  void reads(const Run& run);

  /// Throws UsageError, naming option and path, unless the file may be written. "" is no path.
  void writes(const std::string& option, const std::string& path, Output kind);
  /// The same for the folder of a new run.
  void writes_run(const std::string& option, const std::string& folder) const;

 private:
  using FileId = std::pair<std::uintmax_t, std::uintmax_t>;  // device and inode
  struct Input {
    FileId id;
    std::string path;
    bool of_run;
  };

  static std::optional<FileId> id_of(const std::string& path);
  void note_input(const std::string& path, bool of_run);
  void require_unread(const std::string& option, const std::string& path) const;

  bool force_;
  std::vector<Input> inputs_;
  std::vector<std::filesystem::path> outputs_;
};

}  // namespace headwise::cli
