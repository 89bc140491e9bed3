// A fuzz target: what is done with an arbitrary input. Whatever the input, a target may throw only
// headwise::Error, in words that are safe to show; what it accepts must keep the target's promises.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headwise/core/function_ref.hpp"

namespace headwise::fuzz {

struct Target {
  std::string_view name;
  void (*run)(std::string_view input);
};

/// Every target of this program.
std::vector<Target>& targets();

/// Prints what was promised and ends the program.
[[noreturn]] void broken(std::string_view promise, std::string_view detail = "");
inline void must(bool kept, std::string_view promise) {
  if (!kept) broken(promise);
}

/// Whether f returns. Where it throws an Error, its message must be one that a terminal can show,
/// of 4 kB at most; what else it throws is not caught.
bool accepted(FunctionRef<void()> f);

/// A folder of this process, which goes away at its end.
const std::string& folder();
/// Writes a file into it, and returns its path.
std::string file(const std::string& name, std::string_view bytes);

struct Registered {
  Registered(std::string_view name, void (*run)(std::string_view)) {
    targets().push_back({name, run});
  }
};

}  // namespace headwise::fuzz

/// Defines the target NAME; the input is the string_view `input`.
#define FUZZ_TARGET(NAME)                                                        \
  static void fuzz_##NAME(std::string_view input);                               \
  static const headwise::fuzz::Registered registered_##NAME{#NAME, fuzz_##NAME}; \
  static void fuzz_##NAME(std::string_view input)
