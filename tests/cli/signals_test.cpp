// Signals and outputs that fail, seen from outside: what is saved, and how the program ends.
#include "cli/program.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace headwise::test;
using nlohmann::json;

namespace {

const std::string kLong = "train --steps 100000000 --eval-every 1000000 " + kTiny;

/// Runs a training in the background, which the shell knows as $p, until its folder holds a state,
/// and then a command; `prefix` goes before the program. Ends with the training's exit code.
std::string while_training(const std::string& run, const std::string& command,
                           const std::string& prefix = "exec") {
  return "( " + prefix + " \"$H\" " + kLong + " --save-every 10 --out " + run +
         " ) & p=$!; i=0; while [ ! -e " + run +
         "/last.safetensors ]; do sleep 0.02; i=$((i+1)); [ $i -lt 3000 ] || exit 99; done\n" +
         command + "\nwait $p";
}

}  // namespace

TEST_CASE("a signal to stop saves the state first, and the exit code tells which",
          "[cli][signals]") {
  const auto& [signal, code] = GENERATE(table<std::string, int>(
      {{"INT", 0}, {"TERM", 128 + 15}, {"HUP", 128 + 1}, {"XCPU", 128 + 24}}));
  const Folder folder;
  const std::string run = folder / "run";
  // A shell starts what is in the background with SIGINT ignored; env undoes it.
  const Result r =
      shell(while_training(run, "kill -" + signal + " $p", "exec env --default-signal=INT"));
  CAPTURE(signal, r.err);
  CHECK(r.code == code);
  CHECK(mentions(r.err, {"stopping after this step"}));
  CHECK(mentions(r.out, {"stopped at step ", ", saved; "}));
  CHECK(shell("\"$H\" eval --threads 1 " + run).code == 0);
}

TEST_CASE("signals that were ignored at the start stay ignored", "[cli][signals]") {
  const Folder folder;
  const std::string run = folder / "run";
  const Result r = shell(while_training(run, "kill -INT $p; kill -HUP $p; sleep 0.1; kill -TERM $p",
                                        "trap '' INT HUP; exec"));
  CHECK(r.code == 128 + 15);
}

TEST_CASE("a training whose output fails saves its state and says so", "[cli][signals]") {
  const Folder folder;
  const std::string run = folder / "run";
  const Result full =
      shell("\"$H\" train --steps 9 --eval-every 3" + kTiny + "--out " + run + " >/dev/full");
  CHECK(full.code == 1);
  CHECK(mentions(full.err, {"standard output: cannot be written: No space left on device"}));
  CHECK(mentions(shell("\"$H\" train --threads 1 --resume " + run).out, {"step      9"}));
}

TEST_CASE("output into a closed pipe ends the program as any other, with its state saved",
          "[cli][signals]") {
  const Folder folder;
  const std::string run = folder / "run";
  const Result r = shell("( \"$H\" train --steps 9 --eval-every 1" + kTiny + "--out " + run +
                         "; echo $? >" + (folder / "code") + " ) | true");
  CHECK(contents(folder / "code") == "141\n");
  CHECK(r.err.empty());
  CHECK(shell("\"$H\" train --threads 1 --resume " + run).code == 0);
}

TEST_CASE("messages into a full device or a closed pipe do not stop a training", "[cli][signals]") {
  const Folder folder;
  const std::string run = folder / "run";
  const Result r = shell(while_training(run, "kill -TERM $p", "exec 2>/dev/full; exec"));
  CHECK(r.code == 128 + 15);
  CHECK(mentions(r.out, {"saved"}));
}

TEST_CASE("a file that may not grow is an error, and the old state stays", "[cli][signals]") {
  const Folder folder;
  const std::string run = trained(folder, "--layers 1 --context 8 --steps 4 --stop-after 2");
  const std::string before = contents(run + "/last.safetensors");
  const Result r = shell("ulimit -f 1; \"$H\" train --threads 1 --resume " + run);
  CHECK(r.code == 1);
  CHECK(mentions(r.err, {"File too large"}));
  CHECK(contents(run + "/last.safetensors") == before);
}
