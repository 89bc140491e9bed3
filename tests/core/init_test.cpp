// The tests' main calls init(), so this program is what it left.
#include "headwise/core/init.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/blas_kernel.hpp"
#include "headwise/core/gemm.hpp"
#include "support/catch.hpp"

using namespace headwise;

namespace {

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

constexpr Processor kOld{}, kAvx2{.avx2 = true}, kAvx512{.avx2 = true, .avx512 = true},
    kZen3{.avx2 = true, .amd_19h = true}, kZen4{.avx2 = true, .avx512 = true, .amd_19h = true};

}  // namespace

TEST_CASE("init sets what libraries read at their start, and the process keeps its name",
          "[core][init]") {
  CHECK(std::getenv("OPENBLAS_NUM_THREADS") != nullptr);
  CHECK((std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr));
  const std::string file = std::filesystem::read_symlink("/proc/self/exe").filename();
  CHECK(first_line("/proc/self/comm") == file.substr(0, 15));
}

TEST_CASE("init opens the standard descriptors that are closed", "[core][init]") {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int fd : {0, 1, 2}) ::close(fd);
    char name[] = "test";
    char* argv[] = {name, nullptr};
    init(0, argv + 1);  // no program name: never starts again
    char byte = 0;
    const bool reads = ::read(0, &byte, 1) >= 0, prints = ::write(1, &byte, 1) >= 0;
    const bool drops = ::write(2, &byte, 1) == 1;
    const int next = ::open("/dev/null", O_RDONLY);
    ::_exit(!reads && !prints && drops && next > 2 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("BLAS kernels follow from what the processor can do", "[core][init]") {
  // Its oldest, taken on a model that the BLAS does not know.
  CHECK(better_kernel("Prescott", kOld, "0.3.21").empty());
  CHECK(better_kernel("Prescott", kAvx2, "0.3.21") == "Haswell");
  CHECK(better_kernel("Prescott", kAvx512, "0.3.21") == "SkylakeX");
  CHECK(better_kernel("Prescott", kZen3, "0.3.21") == "Haswell");
  CHECK(better_kernel("Prescott", kZen4, "0.3.21") == "Haswell");
  CHECK(better_kernel("Prescott", kZen4, "0.3.27") == "SkylakeX");
  CHECK(better_kernel("Sandybridge", kAvx2, "0.3.21") == "Haswell");
  CHECK(better_kernel("Haswell", kAvx512, "0.3.21") == "SkylakeX");
  // Good ones stay.
  CHECK(better_kernel("Zen", kAvx2, "0.3.21").empty());
  CHECK(better_kernel("Haswell", kAvx2, "0.3.21").empty());
  CHECK(better_kernel("SkylakeX", kAvx512, "0.3.21").empty());
  CHECK(better_kernel("Cooperlake", kAvx512, "0.3.21").empty());
  CHECK(better_kernel("SapphireRapids", kAvx512, "0.3.27").empty());
  CHECK(better_kernel("Zen", kZen4, "0.3.21").empty());
  CHECK(better_kernel("Cooperlake", kZen4, "0.3.27").empty());
  // AVX-512 of 0.3.21 is slower on Zen 4.
  CHECK(better_kernel("Cooperlake", kZen4, "0.3.21") == "Haswell");
  CHECK(better_kernel("SkylakeX", kZen4, "0.3.21") == "Haswell");
  // Nothing is known of others.
  CHECK(better_kernel("armv8", kOld, "0.3.21").empty());
  CHECK(better_kernel("Later", kAvx512, "0.3.30").empty());
}

TEST_CASE("after init the better kernels are in use, unless others were asked for",
          "[core][init]") {
  // init() leaves its choice in the environment too.
  const char* const asked = std::getenv("OPENBLAS_CORETYPE");
  const std::string better = better_blas_kernel();
  CHECK((better.empty() || (asked != nullptr && asked == blas_kernel())));
}
