// Runs the headwise program as a user would, and a folder that goes away afterwards.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace headwise::test {

/// A folder of its own for a test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "headwise-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a file and returns its path.
  [[nodiscard]] std::string file(const std::string& name, const std::string& bytes) const {
    std::ofstream(*this / name, std::ios::binary) << bytes;
    return *this / name;
  }

 private:
  std::string path_;
};

inline std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Result {
  int code = -1;
  std::string out, err;
};

/// Runs a shell command in which $H is the program.
inline Result shell(const std::string& command) {
  const Folder folder;
  const std::string all = "H='" HEADWISE_PROGRAM "'; { " + command + "\n} >" + (folder / "out") +
                          " 2>" + (folder / "err");
  const int status = std::system(all.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          contents(folder / "out"), contents(folder / "err")};
}

/// The JSON lines of a text.
inline std::vector<nlohmann::json> lines(const std::string& text) {
  std::vector<nlohmann::json> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(nlohmann::json::parse(line));
  return all;
}

inline Result headwise_program(const std::string& arguments) {
  return shell("\"$H\" " + arguments);
}

/// Trains a model of two heads a layer in no time, on one thread, and returns its run's folder.
inline std::string trained(const Folder& folder, const std::string& options) {
  const std::string run = folder / "run";
  const Result r = headwise_program(
      "train --threads 1 --heads 2 --width 8 --batch 2 --warmup 2 --eval-batches 2 " + options +
      " --out " + run);
  REQUIRE(r.code == 0);
  return run;
}

/// Options of a model that trains in no time, on one thread; and with short evaluations.
inline const std::string kOthers =
    " --threads 1 --layers 1 --heads 2 --width 8 --context 8 --batch 2 --warmup 2 ";
inline const std::string kTiny = kOthers + "--eval-batches 2 ";

}  // namespace headwise::test
