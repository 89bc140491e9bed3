// Files for tests, and what an error says.
#pragma once

#include <stdlib.h>  // mkdtemp is POSIX

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

#include "headwise/core/error.hpp"

namespace headwise::test {

/// A new folder that goes with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_((std::filesystem::temp_directory_path() / "headwise-test-XXXXXX").string()) {
    require<Error>(::mkdtemp(path_.data()) != nullptr, "{}: no temporary folder", path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(std::string_view name) const {
    return path_ + "/" + std::string(name);
  }

 private:
  std::string path_;
};

/// What the E that f throws says; "nothing was thrown" when it throws none. Anything else that it
/// throws passes through, and fails the test.
template <class E = Error, class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing was thrown";
}

/// Whether a text holds every one of the parts.
inline bool mentions(std::string_view text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts)
    if (text.find(part) == std::string_view::npos) return false;
  return true;
}

}  // namespace headwise::test
