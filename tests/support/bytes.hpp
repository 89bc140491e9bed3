// Files byte by byte, by other means than the library's.
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace headwise::test {

inline void write_bytes(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace headwise::test
