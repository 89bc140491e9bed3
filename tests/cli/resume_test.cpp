// A run that goes on: what belongs to it, what changes and is told, and one training at a time.
#include "cli/program.hpp"
#include "support/catch.hpp"

using namespace headwise::test;
using nlohmann::json;

namespace {

json config_of(const std::string& run) { return json::parse(contents(run + "/config.json")); }

std::string resumed(const std::string& run, const std::string& options) {
  const Result r = headwise_program("train --threads 1 --resume " + run + options);
  CHECK(r.code == 0);
  return r.err;
}

/// log.jsonl without what depends on time.
std::vector<json> log_of(const std::string& run) {
  std::vector<json> all = lines(contents(run + "/log.jsonl"));
  for (json& line : all) line.erase("tokens_per_second");
  return all;
}

}  // namespace

TEST_CASE("what a resumed run changes is told, with the rate at the next step", "[cli][resume]") {
  const Folder folder;
  const std::string run = folder / "run";
  REQUIRE(headwise_program("train --steps 10 --eval-every 5 --save-every 3 --out " + run + kTiny)
              .code == 0);
  CHECK(resumed(run, "").empty());
  // Finished at a tenth of the rate; the schedule of 20 steps is half way down.
  CHECK(resumed(run, " --steps 20 --stop-after 2") ==
        "note: --steps: 20, was 10\n"
        "note: learning rate at step 11: 0.000628, was 0.0001; the schedule is the one of 20 steps "
        "from the start\n");
  CHECK(config_of(run)["train"]["steps"] == 20);
  CHECK(resumed(run, " --stop-after 1").empty());
  CHECK(resumed(run,
                " --eval-every 4 --eval-batches 1 --save-every 0 --study-every 2 "
                "--sample-every 9 --stop-after 1") ==
        "note: --eval-every: 4, was 5\n"
        "note: --eval-batches: 1, was 2\n"
        "note: --save-every: 0, was 3\n"
        "note: --sample-every: 9, was 0\n"
        "note: --study-every: 2, was 0\n");
  CHECK(config_of(run)["loop"] == json{{"save-every", 0}, {"sample-every", 9}, {"study-every", 2}});
  CHECK(resumed(run, " --eval-every 4 --study-every 2 --stop-after 1").empty());  // as it was
}

TEST_CASE("how often a run is saved and looked at belongs to it", "[cli][resume]") {
  const Folder folder;
  const std::string run = folder / "run";
  REQUIRE(headwise_program("train --steps 40 --eval-every 40 --save-every 4 --study-every 15 "
                           "--stop-after 2 --out " +
                           run + kTiny)
              .code == 0);
  // Stopped before the second look: nothing but the configuration knows of it.
  CHECK(resumed(run, " --stop-after 20").empty());
  const std::vector<json> log = log_of(run);
  REQUIRE(log.size() == 2);
  CHECK(log[1]["event"] == "study");
  CHECK(log[1]["step"] == 15);
  // Without the run's own --save-every there would be no state before step 1000000.
  const Result r =
      shell("touch " + (folder / "before") +
            "; \"$H\" train --threads 1 --steps 1000000 --eval-every 1000000 --resume " + run +
            " >/dev/null 2>&1 & for i in $(seq 1000); do [ " + run + "/last.safetensors -nt " +
            (folder / "before") + " ] && echo saved && break; sleep 0.01; done; kill -9 $!");
  CHECK(r.out == "saved\n");
}

TEST_CASE("an old run is looked at as its log was", "[cli][resume]") {
  const Folder folder;
  const std::string run = folder / "run", options = " --steps 12 --study-every 2 --out ";
  REQUIRE(headwise_program("train --stop-after 5" + options + run + kTiny).code == 0);
  json config = config_of(run);
  for (const char* key : {"format", "identity", "tokenizer", "loop"}) config.erase(key);
  (void)folder.file("run/config.json", config.dump());
  REQUIRE(headwise_program("train" + options + (folder / "straight") + kTiny).code == 0);
  CHECK(resumed(run, "") == "note: --study-every: 2, was 0\n");
  CHECK(log_of(run) == log_of(folder / "straight"));
}

TEST_CASE("weights of another run keep their model, but for dropout", "[cli][resume]") {
  const Folder folder;
  const std::string run = trained(folder, "--layers 1 --context 8 --steps 2"),
                    train = "train --threads 1 --steps 1 --eval-batches 1 --init-from " + run +
                            " --out ";
  for (const std::string given :
       {"--heads 1", "--gelu tanh", "--init-std 0.5", "--context 4", "--no-bias", "--no-tie",
        "--attention-only", "--layers 2", "--width 16"}) {
    CAPTURE(given);
    const Result r = headwise_program(train + (folder / "new") + " " + given);
    CHECK(r.code == 2);
    CHECK_THAT(r.err, Catch::Contains("but the weights of --init-from " + run + " are for "));
  }
  CHECK(!std::filesystem::exists(folder / "new"));
  const Result same = headwise_program(train + (folder / "new") + " --heads 2 --dropout 0.25");
  CHECK(same.code == 0);
  CHECK(same.err == "note: --dropout: 0.25; " + run + " has 0\n");
}

TEST_CASE("two trainings into one folder: one wins, the other is told", "[cli][resume][lock]") {
  const Folder folder;
  const std::string run = folder / "run", train = "\"$H\" train --steps 200 --out " + run + kTiny;
  const Result r = shell("(" + train + "; echo $? > " + (folder / "a") + ") & " + train +
                         "; echo $? > " + (folder / "b") + "; wait");
  const std::string a = contents(folder / "a"), b = contents(folder / "b");
  CHECK((a == "0\n") != (b == "0\n"));
  CHECK_THAT(r.err, Catch::Contains(run + ": is in use by process ") ||
                        Catch::Contains(run + " holds a run already"));
  CHECK(headwise_program("train --threads 1 --resume " + run).code == 0);
}

TEST_CASE("a run that trains is read, and not trained twice", "[cli][resume][lock]") {
  const Folder folder;
  const std::string run = folder / "run";
  const Result r =
      shell("\"$H\" train --steps 100000000 --eval-every 20 --out " + run + kTiny +
            " >/dev/null & until [ -f " + run + "/last.safetensors ]; do sleep 0.01; done\n" +
            "\"$H\" train --resume " + run + "; echo $?\n" + "\"$H\" train --out " + run + kTiny +
            "; echo $?\n" + "\"$H\" eval --threads 1 " + run + " >/dev/null; echo $?\n" +
            "echo $!; kill -9 $!; wait $! 2>/dev/null\n" +
            "\"$H\" train --threads 1 --stop-after 1 --resume " + run + " >/dev/null; echo $?");
  std::istringstream out(r.out);
  std::string resume, again, eval, process, after;
  out >> resume >> again >> eval >> process >> after;
  CHECK(resume == "1");
  CHECK(again == "1");
  CHECK(eval == "0");
  CHECK(after == "0");
  const std::string message = run + ": is in use by process " + process + " on host ";
  CHECK_THAT(r.err, Catch::Contains(message));
  CHECK(r.err.find(message) != r.err.rfind(message));
}

TEST_CASE("a new run in a folder of one that saved nothing begins with an empty log",
          "[cli][resume]") {
  const Folder folder;
  const std::string run = folder / "run";
  const std::string train = "train --steps 4 --eval-every 2 --study-every 2 --out ";
  REQUIRE(headwise_program(train + run + kTiny).code == 0);
  std::filesystem::remove(run + "/last.safetensors");
  REQUIRE(headwise_program(train + run + kTiny + "--seed 2").code == 0);
  REQUIRE(headwise_program(train + (folder / "fresh") + kTiny + "--seed 2").code == 0);
  CHECK(log_of(run) == log_of(folder / "fresh"));
  CHECK(contents(run + "/model.safetensors") == contents(folder / "fresh/model.safetensors"));
}

TEST_CASE("a training that does not stay finite says how to go back, and that works",
          "[cli][resume][errors]") {
  const Folder folder;
  const std::string run = folder / "run", none = folder / "none";
  const Result never = headwise_program("train --steps 9 --lr 1e100 --out " + none + kTiny);
  CHECK(never.code == 2);
  CHECK_THAT(never.err, Catch::Contains("--lr: must be finite in this precision, got 1e+100"));
  CHECK(!std::filesystem::exists(none));
  const Result early =
      headwise_program("train --steps 50 --lr 1e30 --clip 0 --out " + none + kTiny);
  CHECK(early.code == 1);
  CHECK_THAT(early.err, Catch::Contains("nothing was saved in " + none + "; start again with"));
  CHECK(!std::filesystem::exists(none + "/model.safetensors"));

  const Result late = headwise_program(
      "train --steps 400 --lr 0.3 --weight-decay 10 --save-every 1 "
      "--eval-every 5 --out " +
      run + kTiny);
  CHECK(late.code == 1);
  CHECK_THAT(late.err, Catch::Contains(run + " keeps the state of step "));
  const std::string command = "train --init-from " + run + " --lr 0.03";
  CHECK_THAT(late.err, Catch::Contains(command));
  const std::string last = contents(run + "/last.safetensors");
  const Result again = headwise_program("train --threads 1 --resume " + run);
  CHECK(again.code == 1);
  CHECK_THAT(again.err, Catch::Contains(command));
  CHECK(contents(run + "/last.safetensors") == last);
  CHECK(headwise_program(command + " --threads 1 --steps 20 --batch 2 --eval-batches 2 --out " +
                         (folder / "back"))
            .code == 0);
}
