// Which BLAS the tests of this program ran on: a ctest asks for each of Debian's two.
#include <cstdlib>

#include "headwise/core/gemm.hpp"
#include "support/catch.hpp"

TEST_CASE("the BLAS in use is the one the test asks for", "[blas]") {
  const std::string blas = headwise::blas_description();
  CHECK_THAT(blas, Catch::Contains("OpenBLAS"));
  if (const char* expected = std::getenv("HEADWISE_EXPECT_BLAS"))
    CHECK_THAT(blas, Catch::Contains("(" + std::string(expected) + ")"));
}
