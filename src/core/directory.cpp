#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "core/system.hpp"
#include "headwise/core/error.hpp"
#include "headwise/core/file.hpp"
#include "headwise/core/printable.hpp"

namespace headwise {
namespace {

[[noreturn]] void fail_at(const std::string& path, const char* what) {
  throw DataError(fmt::format("{}: {}: {}", printable_path(path), what, system_error()));
}

/// Makes a folder and those above it, each flushed to the disk in the one above.
void make_folder(const std::filesystem::path& path) {
  std::error_code none;
  if (path.empty() || std::filesystem::is_directory(path, none)) return;
  const std::filesystem::path above = path.parent_path();
  make_folder(above);
  if (!path.has_filename()) return;  // "a/" after "a"
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST)
    fail_at(path.string(), "cannot be made a folder");
  const Descriptor folder(::open(above.empty() ? "." : above.c_str(), O_RDONLY | O_CLOEXEC));
  if (folder.open() && !sync_folder(folder.get()))
    fail_at(path.string(), "made, but the folder above it could not be flushed to the disk");
}

}  // namespace

Directory::Directory(const std::string& path)
    : path_(path),
      folder_(std::make_shared<Descriptor>(
          again([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }))) {
  require<DataError>(folder_->open() || (errno != ENOENT && errno != ENOTDIR), "{}: no such folder",
                     printable_path(path));
  if (!folder_->open()) fail_at(path, "cannot be opened");
}

Directory Directory::create(const std::string& path) {
  make_folder(path);
  return Directory(path);
}

std::string Directory::path(const std::string& name) const {
  require<DataError>(!name.empty() && name != "." && name != ".." &&
                         name.find_first_of(std::string_view("/\0", 2)) == name.npos,
                     "{}: '{}' cannot be the name of a file in it", printable_path(path_),
                     printable_path(name));
  return path_ + "/" + name;
}

bool Directory::has(const std::string& name) const {
  const std::string full = path(name);
  struct ::stat status {};
  if (::fstatat(descriptor(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) return true;
  if (errno != ENOENT) fail_at(full, "cannot be looked at");
  return false;
}

InputFile Directory::file(const std::string& name) const {
  return {descriptor(), name, path(name), Accept::regular};
}

void Directory::replace(const std::string& name, std::string_view text) const {
  AtomicFile file = replace(name);
  file.write(text);
  file.finish();
}

void Directory::append(const std::string& name, std::string_view bytes) const {
  constexpr const char* kFailed = "cannot be written";
  const std::string full = path(name);
  const bool is_new = !has(name);
  Descriptor file(again([&] {
    return ::openat(descriptor(), name.c_str(),
                    O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                    0666);
  }));
  require<DataError>(file.open() || errno != ELOOP,
                     "{}: is a symbolic link, and a folder's own files are not written through one",
                     printable_path(full));
  struct ::stat status {};
  if (!file.open() || ::fstat(file.get(), &status) != 0) fail_at(full, kFailed);
  require<DataError>(S_ISREG(status.st_mode), "{}: is not a regular file", printable_path(full));
  if (!write_all(file.get(), bytes) || again([&] { return ::fsync(file.get()); }) != 0) {
    const int reason = errno;
    [[maybe_unused]] const int cut = ::ftruncate(file.get(), status.st_size);  // no half line
    errno = reason;
    fail_at(full, kFailed);
  }
  if (!file.close() || (is_new && !sync_folder(descriptor()))) fail_at(full, kFailed);
}

void Directory::remove(const std::string& name) const {
  const std::string full = path(name);
  if (::unlinkat(descriptor(), name.c_str(), 0) != 0 && errno != ENOENT)
    fail_at(full, "cannot be removed");
}

}  // namespace headwise
