// Which of the BLAS's kernels the program runs on, and what a run remembers of that.
#include "cli/program.hpp"
#include "core/blas_kernel.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using headwise::better_kernel;
using headwise::Processor;
using namespace headwise::test;
using nlohmann::json;

namespace {

/// Two kernels that every x86-64 processor has.
#ifdef __x86_64__
constexpr bool kChoice = true;
#else
constexpr bool kChoice = false;
#endif
const std::string kOne = "OPENBLAS_CORETYPE=Nehalem ", kOther = "OPENBLAS_CORETYPE=Prescott ";

}  // namespace

TEST_CASE("the user's choice of BLAS kernels is respected", "[cli][blas]") {
  if (!kChoice) return;
  CHECK(mentions(shell(kOne + "\"$H\" info").out, {"kernel Nehalem\n"}));
  CHECK(mentions(shell(kOther + "\"$H\" info").out, {"kernel Prescott\n"}));
}

TEST_CASE("without a choice the program takes the better kernels, if there are any",
          "[cli][blas]") {
  for (const char* none : {"env -u OPENBLAS_CORETYPE ", "OPENBLAS_CORETYPE= "}) {
    const Result r = shell(none + std::string("\"$H\" info"));
    CHECK(r.code == 0);
    CHECK(mentions(r.out, {"kernel "}));
    CHECK_FALSE(mentions(r.out, {"faster"}));
  }
}

TEST_CASE("info and bench say when other kernels are faster than those asked for", "[cli][blas]") {
  const Processor here = Processor::here();
  if (!kChoice || !here.avx2) return;
  const std::string best = better_kernel("Prescott", here, "0.3.21");
  const Result info = shell(kOther + "\"$H\" info");
  CHECK(mentions(
      info.out,
      {"kernel Prescott", best + " is faster here than Prescott; OPENBLAS_CORETYPE is Prescott"}));
  const Result bench = shell(kOther + "\"$H\" bench train --seconds 0.01 --threads 1");
  CHECK(bench.code == 0);
  CHECK(mentions(bench.out, {"kernel Prescott", best + " kernels"}));
}

TEST_CASE("a run remembers its BLAS and goes on with another one, with a note", "[cli][blas]") {
  if (!kChoice) return;
  const Folder folder;
  const std::string run = folder / "run";
  REQUIRE(shell(kOne + "\"$H\" train --steps 4 --stop-after 2 --out " + run + kTiny).code == 0);
  const std::string blas = json::parse(contents(run + "/config.json")).at("blas");
  CHECK(mentions(blas, {"OpenBLAS", "kernel Nehalem"}));

  const std::string resume = "\"$H\" train --threads 1 --resume " + run;
  const Result other = shell(kOther + resume + " --stop-after 1");
  CHECK(other.code == 0);
  CHECK(mentions(other.err, {"note: the run was started with " + blas, "kernel Prescott",
                             "not with the same bits"}));
  // Its bits are mixed now, and both are told.
  const Result back = shell(kOne + resume + " --stop-after 0");
  CHECK(back.code == 0);
  CHECK(mentions(back.err,
                 {"note: the run was started with " + blas + ", then ", "kernel Prescott"}));
  CHECK(mentions(headwise_program("info " + run).out, {blas + ", then ", "kernel Prescott"}));
}
