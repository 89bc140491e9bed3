// The gradient check of a trained run.
#include "cli/gradcheck_run.hpp"

#include <algorithm>

#include "cli/program.hpp"
#include "headwise/train/run.hpp"
#include "support/catch.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

/// A run whose gradients stand far above rounding.
const std::string kRun = "--layers 1 --steps 3 --init-std 0.5 ";

/// What a check of two elements of each tensor says. It must pass.
GradReport checked(const std::string& run, std::uint64_t seed) {
  const GradCase one = cli::run_case(run, seed);
  CHECK(one.name == "run");
  CHECK(one.label == run);
  GradOptions options;
  options.sample = 2;
  const GradReport report = one.check(options);
  INFO(describe(report));
  CHECK(report.verdict == Verdict::pass);
  CHECK(report.tolerance == kGradTolerance);  // double's
  for (const TensorCheck& t : report.tensors) {
    CAPTURE(t.name);
    CHECK(t.verdict == Verdict::pass);
    CHECK(t.elements == 2);
  }
  return report;
}

}  // namespace

TEST_CASE("a run is checked on its own text, in double, with its dropout", "[cli][gradcheck]") {
  const Folder folder;
  const std::string run = trained(folder, kRun + "--context 16 --dropout 0.2 --no-tie");
  const GradReport one = checked(run, 1), again = checked(run, 1), other = checked(run, 2);
  CHECK(one.tensors.size() == 21);  // 2 tables, a block's 16, the last norm's 2 and the output's
  CHECK(one.worst == again.worst);
  CHECK(one.analytic == again.analytic);
  CHECK(one.analytic != other.analytic);  // other tokens, and others dropped
}

TEST_CASE("a run is checked on its own task, whatever its precision", "[cli][gradcheck]") {
  const Folder folder;
  checked(trained(folder, kRun + "--task copy --length 3 --dtype f64 --attention-only"), 1);
}

TEST_CASE("without a budget a run's check takes a sample", "[cli][gradcheck]") {
  const Folder folder;
  const GradReport report =
      cli::run_case(trained(folder, kRun + "--task copy --length 3"), 1).check({});
  CHECK(report.verdict != Verdict::fail);
  for (const TensorCheck& t : report.tensors)
    CHECK(t.elements == std::min<Index>(8, t.shape.size()));
}

TEST_CASE("a run that is not there is an error before the check", "[cli][gradcheck]") {
  const Folder folder;
  CHECK_THROWS_AS(cli::run_case(folder / "nothing", 1), DataError);
  const std::string text = folder.file("text", std::string(300, 'a') + std::string(300, 'b'));
  const std::string run = trained(folder, kRun + "--context 8 --data " + text);
  std::filesystem::resize_file(text, 500);
  CHECK_THROWS_WITH(cli::run_case(run, 1),
                    Catch::Contains("is not the one the run was started with"));
}
