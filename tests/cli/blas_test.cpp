// Which of the BLAS's kernels the program runs on, and what a run remembers of that.
#include "cli/program.hpp"
#include "headwise/core/gemm.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

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
  const Result r = shell("env -u OPENBLAS_CORETYPE \"$H\" info");
  // What this test runs on was chosen by the BLAS itself, unless the user chose.
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr) return;
  const std::string better = headwise::better_blas_kernel();
  const std::string expected = better.empty() ? headwise::blas_kernel() : better;
  CHECK(mentions(r.out, {"kernel " + expected + "\n"}));
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
