#include "cli/output_guard.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "headwise/core/file.hpp"
#include "headwise/core/printable.hpp"

namespace headwise::cli {
namespace {

namespace fs = std::filesystem;

/// The first bytes of a file.
std::string beginning_of(const std::string& path) {
  const InputFile file(path);
  std::string bytes(std::min<std::uint64_t>(file.size(), std::size_t{1} << 16), '\0');
  file.read_at(0, bytes.data(), bytes.size());
  return bytes;
}

bool holds(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

/// Whether a file is an earlier output of that kind, of this version or of one before.
bool is_earlier(Output kind, const std::string& path) {
  switch (kind) {
    case Output::page: {
      const std::string text = beginning_of(path);
      return text.starts_with("<!DOCTYPE html>\n") &&
             (holds(text, "<title>What each attention head does</title>") ||
              holds(text, "<title>Gradient check: "));
    }
    case Output::study: {  // a key of the document itself, one space deep
      const std::string text = read_file(path);
      return text.starts_with("{\n") && holds(text, "\n \"headwise\": \"");
    }
    case Output::patterns:  // the header of the file: names and shapes
      return holds(beginning_of(path), "\"data.ids\":{");
    case Output::text:
      return false;
  }
  return false;
}

}  // namespace

std::optional<OutputGuard::FileId> OutputGuard::id_of(const std::string& path) {
  struct ::stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return FileId(status.st_dev, status.st_ino);
}

void OutputGuard::note_input(const std::string& path, bool of_run) {
  if (path.empty() || path == "-") return;
  if (const auto id = id_of(path)) inputs_.push_back({*id, path, of_run});
}

void OutputGuard::reads(const Run& run) {
  for (const auto& entry : fs::directory_iterator(run.folder()))
    note_input(entry.path().string(), true);
  reads(run.config().data);
  reads(run.config().task);
}

void OutputGuard::require_unread(const std::string& option, const std::string& path) const {
  const auto id = id_of(path);
  const auto input =
      std::find_if(inputs_.begin(), inputs_.end(), [&](const Input& i) { return i.id == id; });
  if (input == inputs_.end()) return;
  require<UsageError>(!input->of_run, "{}: {} is {}, a file of the run; choose another", option,
                      printable(path), printable(input->path));
  require<UsageError>(force_,
                      "{}: {} is {}, which this command reads; choose another file, or replace it "
                      "with --force",
                      option, printable(path), printable(input->path));
}

void OutputGuard::writes(const std::string& option, const std::string& path, Output kind) {
  static constexpr std::array<std::string_view, 4> kWhat = {
      " and is no page that headwise wrote", " and is no JSON that study wrote",
      " and has no patterns that study wrote", ""};
  if (path.empty()) return;
  std::error_code none;
  const auto id = id_of(path);
  if (!id && fs::exists(path, none))
    return;  // a device, a pipe; or a folder, which fails by itself
  const fs::path place = fs::weakly_canonical(path, none);
  require<UsageError>(std::find(outputs_.begin(), outputs_.end(), place) == outputs_.end(),
                      "{}: {} is another option's file too", option, printable(path));
  outputs_.push_back(place);
  if (!id || id == id_of("/dev/stdout")) return;
  require_unread(option, path);
  require<UsageError>(force_ || fs::is_empty(path) || is_earlier(kind, path),
                      "{}: {} is there already{}; choose another file, or replace it with --force",
                      option, printable(path), kWhat[static_cast<std::size_t>(kind)]);
}

void OutputGuard::writes_run(const std::string& option, const std::string& folder) const {
  for (const std::string_view name : Run::kFiles)
    require_unread(option, fmt::format("{}/{}", folder, name));
  Run::require_free(folder, force_);
}

}  // namespace headwise::cli
