// libFuzzer's side (clang, -fsanitize=fuzzer): fuzz --target=NAME [LIBFUZZER OPTION ...] CORPUS
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fuzz/target.hpp"

using namespace headwise::fuzz;

namespace {
const Target* chosen = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  for (int i = 1; i < *argc; ++i)
    for (const Target& t : targets())
      if ((*argv)[i] == "--target=" + std::string(t.name)) chosen = &t;
  if (chosen != nullptr) return 0;
  std::fprintf(stderr, "fuzz: give one of");
  for (const Target& t : targets()) std::fprintf(stderr, " --target=%s", t.name.data());
  std::fprintf(stderr, "\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  chosen->run({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
