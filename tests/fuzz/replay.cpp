// Runs every target on its kept inputs, in every build and without libFuzzer: replay FOLDER, which
// has a folder for each target. Prints how many inputs there were and how long the slowest took.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/target.hpp"

using namespace headwise::fuzz;
namespace fs = std::filesystem;

namespace {

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

double seconds_of(const Target& target, const fs::path& seed) {
  const std::string input = contents(seed);
  const auto start = std::chrono::steady_clock::now();
  target.run(input);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: replay FOLDER\n"), 2;
  for (const Target& target : targets()) {
    int count = 0;
    double slowest = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(argv[1]) / target.name)) {
      std::fprintf(stderr, "%s\n", entry.path().c_str());  // where it ends, if it does
      slowest = std::max(slowest, seconds_of(target, entry.path()));
      ++count;
    }
    std::printf("%s: %d inputs, the slowest in %.3f s\n", target.name.data(), count, slowest);
    if (count == 0) return 1;
  }
  return targets().empty() ? 1 : 0;
}
