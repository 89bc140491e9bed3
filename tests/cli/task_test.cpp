// Runs that start from something else than a text: tasks, presets, other runs.
#include "cli/program.hpp"
#include "support/catch.hpp"

using namespace headwise::test;

namespace {

const std::string kModel =
    " --threads 1 --layers 1 --heads 2 --width 8 --batch 2 --warmup 2 "
    "--eval-batches 2 ";

/// Standard error of a command that must exit with `code`.
std::string command_refusal(const std::string& arguments, int code = 2) {
  const Result r = headwise_program(arguments);
  CHECK(r.code == code);
  CHECK(r.out.empty());
  return r.err;
}

}  // namespace

TEST_CASE("a task is trained, resumed, examined and asked", "[cli][task]") {
  const Folder folder;
  const std::string run = folder / "run";
  Result r =
      headwise_program("train --task copy --length 3 --steps 6 --eval-every 3 --stop-after 4" +
                       kModel + "--json --out " + run);
  REQUIRE(r.code == 0);
  const auto first = lines(r.out);
  REQUIRE(first.size() == 2);
  CHECK(first[0]["val_accuracy"] == 0.0);
  r = headwise_program("train --json --threads 1 --resume " + run);
  REQUIRE(r.code == 0);
  CHECK(lines(r.out).back()["steps"] == 6);
  r = headwise_program("eval --threads 1 --json " + run);
  REQUIRE(r.code == 0);
  const auto found = lines(r.out).at(0);
  CHECK(found["accuracy"].is_number());
  CHECK(found["tokens"] == 4096 * 4);
  r = headwise_program("sample --threads 1 --json --samples 2 --prompt abc " + run);
  REQUIRE(r.code == 0);
  for (const auto& line : lines(r.out)) {
    const auto text = line["text"].get<std::string>();
    CHECK(text.starts_with("abc\t"));
    CHECK(text.find('\n') == std::string::npos);
  }
  r = headwise_program("sample --threads 1 --samples 2 " + run);  // asks for copies of its own
  CHECK(r.code == 0);
  CHECK(command_refusal("eval --data x " + run) ==
        "headwise: --data: x, but " + run + " was trained on the task copy, not on a text\n");
  CHECK(command_refusal("train --length 4 --resume " + run) ==
        "headwise: --length: belongs to the run " + run + " and cannot change on --resume\n");
}

TEST_CASE("a file of questions and answers is a task", "[cli][task]") {
  const Folder folder;
  std::string table;
  for (int i = 0; i < 40; ++i) table += std::to_string(i) + "+1\t" + std::to_string(i + 1) + "\n";
  const std::string file = folder.file("sums.tsv", table), run = folder / "run";
  Result r =
      headwise_program("train --task " + file + " --steps 3 --json" + kModel + "--out " + run);
  REQUIRE(r.code == 0);
  CHECK(lines(r.out).back()["steps"] == 3);
  CHECK(headwise_program("train --resume " + run + " --steps 4 --threads 1").code == 0);
  (void)folder.file("sums.tsv", table + "50+1\t51\n");
  CHECK(command_refusal("train --resume " + run + " --steps 5", 1)
            .find("is not the one the run was started") != std::string::npos);
}

TEST_CASE("few validation examples are examined once each", "[cli][task]") {
  const Folder folder;
  std::string table;  // 2, 13 and others validate
  for (int i = 0; i < 40; ++i) table += std::to_string(i) + "\t" + std::to_string(i + 1) + "\n";
  const std::string run = folder / "run";
  Result r = headwise_program("train --task " + folder.file("next.tsv", table) + " --steps 2" +
                              kModel + "--out " + run);
  REQUIRE(r.code == 0);
  CHECK_THAT(r.out, Catch::Contains("36 examples to train on, 4 to validate on") &&
                        Catch::Contains("right 0 of 4 "));
  CHECK(lines(contents(run + "/log.jsonl")).at(0)["val_answers"] == 4);
  CHECK_THAT(headwise_program("eval " + run).out, Catch::Contains("; 0 of 4 right (0.00 %)\n"));
  const auto found = lines(headwise_program("eval --json " + run).out).at(0);
  CHECK(found["answers"] == 4);
  CHECK(found["right"] == 0);
  CHECK(found["held_out"] == true);
  // Of two examples none is held back.
  const std::string two = folder / "two";
  r = headwise_program("train --task " + folder.file("two.tsv", "1\ta\n3\tc\n") + " --steps 2" +
                       kModel + "--out " + two);
  CHECK_THAT(r.out, Catch::Contains("  training examples ") && !Catch::Contains(" val "));
  CHECK_THAT(headwise_program("eval " + two).out,
             Catch::Contains("tokens of the training examples; "));
}

TEST_CASE("what cannot be a task is refused before there is a folder", "[cli][task][errors]") {
  const Folder folder;
  const std::string out = " --out " + (folder / "run");
  CHECK(command_refusal("train --task copi" + out) ==
        "headwise: --task: 'copi' is none of copy, induction, and no file (FILE.tsv: a file's name "
        "has a '.' or '/' in it)\n");
  CHECK(command_refusal("train --task copy --data x" + out) ==
        "headwise: --data: x and --task copy exclude each other\n");
  CHECK(command_refusal("train --length 4" + out) ==
        "headwise: --length: 4 is for --task, and there is none\n");
  CHECK(command_refusal("train --task copy --tokenizer byte" + out) ==
        "headwise: --tokenizer: byte, but a task's tokens are its characters\n");
  CHECK(command_refusal("train --task copy --context 12" + out) ==
        "headwise: --context: 12 tokens are too few for the task copy, which needs 41\n");
  CHECK(command_refusal("train --task ./no.tsv" + out, 1).find("./no.tsv") != std::string::npos);
  CHECK(command_refusal("train --min-count 3" + out) ==
        "headwise: --min-count: 3 is for --tokenizer word, not char\n");
  CHECK(command_refusal("train --preset tiny" + out)
            .starts_with("headwise: --preset: 'tiny' is none of "));
  CHECK(command_refusal("train --sample-every -1" + out) ==
        "headwise: --sample-every: must be >= 0, got -1\n");
  CHECK(!std::filesystem::exists(folder / "run"));
}

TEST_CASE("a preset gives what is not said", "[cli][preset]") {
  const Folder folder;
  const std::string run = folder / "run";
  const Result r = headwise_program(
      "train --task induction --length 20 --preset induction --heads 2 --steps 1 --threads 1 "
      "--eval-batches 1 --no-bias --out " +
      run);
  REQUIRE(r.code == 0);
  const auto model = nlohmann::json::parse(contents(run + "/config.json"))["model"];
  CHECK(model["layers"] == 2);
  CHECK(model["heads"] == 2);
  CHECK(model["width"] == 64);
  CHECK(model["context"] == 20);  // a newline and 20 letters, of which the last is only predicted
  CHECK(model["attention-only"] == true);
  CHECK(model["tie"] == false);
  CHECK(model["bias"] == false);
  CHECK(model["init-std"] == 0.125);
}

TEST_CASE("a run starts from another's weights and tokens", "[cli][init]") {
  const Folder folder;
  const std::string text = folder.file("a.txt", "abcabcabcabcabcabcabcabcabc abc\n"),
                    other = folder.file("b.txt", "ccbbaa cba cba cba cba cba cba\n"),
                    strange = folder.file("c.txt", "abcd abcd abcd abcd abcd abcd\n"),
                    one = folder / "one", two = folder / "two";
  REQUIRE(
      headwise_program("train --data " + text + " --steps 3" + kModel + "--context 8 --out " + one)
          .code == 0);
  Result r =
      headwise_program("train --data " + other + " --init-from " + one +
                       " --steps 1 --lr 1e-9 --threads 1 --eval-batches 2 --json --out " + two);
  REQUIRE(r.code == 0);
  CHECK(contents(one + "/tokenizer.json") == contents(two + "/tokenizer.json"));
  const auto loss = [&](const std::string& run) {
    return lines(headwise_program("eval --json --threads 1 --data " + other + " " + run).out)
        .at(0)["loss"]
        .get<double>();
  };
  CHECK(loss(one) == Approx(loss(two)).epsilon(1e-4));  // a step of 1e-9 changes next to nothing
  const std::string three = " --steps 1 --threads 1 --out " + (folder / "three");
  CHECK(command_refusal("train --data " + strange + " --init-from " + one + three, 1) ==
        "headwise: " + strange +
            ": text: character 'd' (U+0064) at index 3 is not one of the 5 characters of the "
            "training text\n");
  for (const std::string option : {"--width 16", "--heads 1", "--gelu tanh", "--context 4"})
    CHECK(command_refusal("train --data " + other + " --init-from " + one + " " + option + three)
              .starts_with("headwise: " + option.substr(0, option.find(' ')) + ": "));
  CHECK(command_refusal("train --init-from " + one + " --preset toy" + three) ==
        "headwise: --preset: toy and --init-from " + one + " exclude each other\n");
  CHECK(command_refusal("train --init-from " + (folder / "no") + three, 1) ==
        "headwise: " + (folder / "no") + ": no such run folder\n");
  CHECK(!std::filesystem::exists(folder / "three"));
}

TEST_CASE("samples shown on the way change nothing that is learned", "[cli][sample]") {
  const Folder folder;
  const std::string text = folder.file("a.txt", "abcabcabcabcabcabcabcabcabc abc\n"),
                    options = "train --data " + text + " --steps 6 --context 8" + kModel,
                    quiet = folder / "quiet", shown = folder / "shown";
  REQUIRE(headwise_program(options + "--out " + quiet).code == 0);
  const Result r = headwise_program(options + "--sample-every 2 --json --out " + shown);
  REQUIRE(r.code == 0);
  int samples = 0;
  for (const auto& line : lines(r.out)) samples += line["event"] == "sample";
  CHECK(samples == 3);
  CHECK(contents(quiet + "/last.safetensors") == contents(shown + "/last.safetensors"));
}
