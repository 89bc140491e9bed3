#include "fuzz/target.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/utf8.hpp"
#include "headwise/core/error.hpp"

namespace headwise::fuzz {
namespace {

/// Whether a terminal shows every character of a text and obeys none; lines may end.
bool is_shown(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto c = code_point_at(text, at);
    if (!c || (is_invisible(c->value) && c->value != '\n')) return false;
    at += c->bytes;
  }
  return true;
}

struct TemporaryFolder {
  std::string path = (std::filesystem::temp_directory_path() / "headwise-fuzz-XXXXXX").string();
  TemporaryFolder() {
    if (::mkdtemp(path.data()) == nullptr) broken("a temporary folder can be made", path);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
};

}  // namespace

std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

void broken(std::string_view promise, std::string_view detail) {
  std::fprintf(stderr, "BROKEN: %.*s %.*s\n", static_cast<int>(promise.size()), promise.data(),
               static_cast<int>(detail.size()), detail.data());
  std::abort();
}

bool accepted(FunctionRef<void()> f) {
  try {
    f();
    return true;
  } catch (const Error& e) {
    const std::string_view what = e.what();
    if (what.empty() || what.size() > 4096 || !is_shown(what))
      broken("a message can be shown, in 4 kB:", what.substr(0, 4096));
    return false;
  }
}

const std::string& folder() {
  static const TemporaryFolder the_folder;
  return the_folder.path;
}

std::string file(const std::string& name, std::string_view bytes) {
  std::string path = folder() + "/" + name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

}  // namespace headwise::fuzz
