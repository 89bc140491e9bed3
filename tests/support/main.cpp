// The tests' main: the process is prepared as the program's, fresh buffers are filled with NaN, and
// HEADWISE_ISA limits the vector kernels.
#include <cstdlib>

#include "headwise/core/init.hpp"
#include "headwise/core/memory.hpp"
#include "kernels/isa.hpp"

#define CATCH_CONFIG_RUNNER  // Catch2 2 compiles its runner here
#include "support/catch.hpp"

int main(int argc, char** argv) {
  headwise::init(argc, argv);
  headwise::poison_uninitialized(true);
  if (const char* isa = std::getenv("HEADWISE_ISA")) headwise::kernels::limit_isa(isa);
  return Catch::Session().run(argc, argv);
}
