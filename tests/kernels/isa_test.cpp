#include "kernels/isa.hpp"

#include <cstdlib>
#include <map>
#include <string>

#include "headwise/core/error.hpp"
#include "support/catch.hpp"

using namespace headwise;

TEST_CASE("the instruction set in use is the one that was asked for", "[kernels]") {
  CHECK_FALSE(kernels::isa_name().empty());
  // The tests' main passes HEADWISE_ISA on.
  const char* asked = std::getenv("HEADWISE_ISA");
  if (asked == nullptr) return;
  const std::map<std::string, std::string> names = {
      {"sse4", "SSE4"}, {"avx2", "AVX2"}, {"avx3", "AVX3"}};
  CHECK(kernels::isa_name() == names.at(asked));
}

TEST_CASE("an instruction set that nobody knows is refused", "[kernels][errors]") {
  const std::string before = kernels::isa_name();
  CHECK_THROWS_WITH(kernels::limit_isa("mmx"), "HEADWISE_ISA: 'mmx' is none of sse4, avx2, avx3");
  CHECK_THROWS_AS(kernels::limit_isa(""), UsageError);
  CHECK_THROWS_AS(kernels::limit_isa("AVX2"), UsageError);
  CHECK(kernels::isa_name() == before);
}
