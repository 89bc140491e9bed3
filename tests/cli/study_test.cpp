// headwise study, as a user runs it.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "cli/program.hpp"
#include "headwise/core/safetensors.hpp"
#include "headwise/train/run.hpp"
#include "headwise/train/weights.hpp"
#include "support/catch.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

/// A run with a timeline, of two layers.
const std::string kRun = "--layers 2 --steps 6 --eval-every 3 --study-every 3 ";

nlohmann::json document(const std::string& path) { return nlohmann::json::parse(contents(path)); }

/// In how many groups by role a head is.
Index groups_of(const nlohmann::json& head, const nlohmann::json& groups) {
  const nlohmann::json label = head["role"].is_null() ? "no role" : head["label"];
  const nlohmann::json name =
      fmt::format("{}.{}", head["layer"].get<Index>(), head["head"].get<Index>());
  return std::count_if(groups.begin(), groups.end(), [&](const nlohmann::json& g) {
    return g["label"] == label && g["role"] == head["role"] && g["full"].is_number() &&
           std::count(g["heads"].begin(), g["heads"].end(), name) == 1;
  });
}

std::string refusal(const std::string& arguments, int code = 2) {
  const Result r = headwise_program("study " + arguments);
  CHECK(r.code == code);
  return r.err;
}

}  // namespace

TEST_CASE("a run is studied: text, document, patterns, page", "[cli][study]") {
  const Folder folder;
  const std::string run = trained(folder, kRun + "--context 32");
  const std::string command = "study " + run +
                              " --sequences 6 --clean 'Ann saw' --corrupt 'Ben saw'" +
                              " --answer . --wrong a";
  const Result r =
      headwise_program(command + " --threads 1 --json " + (folder / "1.json") + " --patterns " +
                       (folder / "p.safetensors") + " --out " + (folder / "page.html"));
  REQUIRE(r.code == 0);
  const nlohmann::json found = document(folder / "1.json");
  REQUIRE(found["heads"].size() == 4);
  for (const auto& head : found["heads"]) {
    CHECK(head["layer"].is_number_integer());
    CHECK((head["role"].is_string() || head["role"].is_null()));
    for (const char* key :
         {"previous_token", "current_token", "first_token", "fixed_offset", "duplicate_token",
          "prefix_matching", "copying", "entropy", "confidence", "mean_distance", "locality"}) {
      CAPTURE(key);
      const auto& score = head["scores"][key];
      CHECK(score["value"].is_number());
      CHECK(score["chance"].is_number());
      CHECK((score["p"] >= 0.0 && score["p"] <= 1.0));
    }
    for (const char* key : {"full", "frozen_patterns", "mean", "resample"})
      CHECK(head["ablation"][key].is_number());
    CHECK(head["importance"].is_number());
    CHECK(groups_of(head, found["groups"]) == 1);
  }
  CHECK(found["timeline"].size() == 3);  // before the first step, at 3 and 6
  CHECK(found["timeline"][1]["step"] == 3);
  CHECK(found["timeline"][1]["val_loss"].is_number());
  CHECK(found["timeline"][1]["heads"].size() == 4);
  CHECK(found["patching"]["heads"].size() == 4);
  CHECK(found["patching"]["heads"][0]["positions"].size() == 7);
  CHECK(found["texts"][0]["tokens"].size() == 32);
  const TensorFile patterns(folder / "p.safetensors");
  CHECK(patterns.tensor<float>("data.blocks.1.attn.pattern").shape() == Shape{6, 2, 32, 32});
  CHECK(patterns.ids("repeated.ids").shape == Shape{6, 32});
  CHECK(std::filesystem::file_size(folder / "page.html") > 10000);
  // The same for any number of threads, and with a comma for the point.
  REQUIRE(
      shell("LC_ALL=de_DE.UTF-8 \"$H\" " + command + " --threads 3 --json " + (folder / "3.json"))
          .code == 0);
  CHECK(contents(folder / "3.json") == contents(folder / "1.json"));
}

TEST_CASE("the patterns of the file give the document's scores", "[cli][study]") {
  const Folder folder;
  const std::string run = trained(folder, kRun + "--task induction --context 64 --dtype f64");
  REQUIRE(headwise_program("study " + run + " --sequences 5 --json " + (folder / "j") +
                           " --patterns " + (folder / "p"))
              .code == 0);
  const nlohmann::json found = document(folder / "j");
  const TensorFile file(folder / "p");
  const Tensor<double> pattern = file.tensor<double>("data.blocks.1.attn.pattern");
  const Ids lengths = file.ids("data.lengths");
  const Index time = pattern.shape()[2];
  double sum = 0;
  Index queries = 0;
  for (Index b = 0; b < 5; ++b)
    for (Index i = 1; i < lengths.values[static_cast<std::size_t>(b)]; ++i, ++queries)
      sum += pattern.values()[static_cast<std::size_t>(((b * 2 + 1) * time + i) * time + i - 1)];
  CHECK(found["heads"][3]["scores"]["previous_token"]["value"].get<double>() ==
        Approx(sum / static_cast<double>(queries)));
}

TEST_CASE("training does not know that it is watched", "[cli][study]") {
  const Folder folder;
  const std::string options =
      "train --threads 1 --layers 2 --heads 2 --width 8 --context 16 --batch 2 --warmup 2 "
      "--eval-batches 2 --steps 7 --eval-every 4 ";
  REQUIRE(headwise_program(options + "--out " + (folder / "plain")).code == 0);
  REQUIRE(headwise_program(options + "--study-every 2 --out " + (folder / "watched")).code == 0);
  REQUIRE(headwise_program(options + "--study-every 2 --stop-after 3 --out " + (folder / "stopped"))
              .code == 0);
  REQUIRE(headwise_program("train --threads 1 --resume " + (folder / "stopped")).code == 0);
  for (const char* file : {"/last.safetensors", "/model.safetensors"}) {
    CHECK(contents(folder / "plain" + file) == contents(folder / "watched" + file));
    CHECK(contents(folder / "plain" + file) == contents(folder / "stopped" + file));
  }
  std::vector<nlohmann::json> whole, stopped;
  for (auto& line : lines(contents(folder / "watched/log.jsonl")))
    if (line["event"] == "study") whole.push_back(line);
  for (auto& line : lines(contents(folder / "stopped/log.jsonl")))
    if (line["event"] == "study") stopped.push_back(line);
  CHECK(whole.size() == 4);
  CHECK(whole == stopped);
}

TEST_CASE("one text is studied by itself, and a head is shown in the terminal", "[cli][study]") {
  const Folder folder;
  const std::string run = trained(folder, kRun + "--context 16");
  Result r = headwise_program("study " + run + " --text 'Ann saw Ben.' --json " + (folder / "j"));
  REQUIRE(r.code == 0);
  const nlohmann::json found = document(folder / "j");
  CHECK(found["texts"].size() == 1);
  CHECK(found["texts"][0]["tokens"].size() == 12);
  CHECK(found["heads"][0]["scores"]["prefix_matching"]["on"] == "data");  // there is nothing else
  r = headwise_program("study " + run + " --text 'Ann saw.' --show 1.0");
  REQUIRE(r.code == 0);
  CHECK(r.out.find("    3 ␠") != std::string::npos);
  CHECK(r.out.find("█") != std::string::npos);  // the first token sees itself alone
}

TEST_CASE("what is studied is there once", "[cli][study]") {
  const Folder folder;
  std::string lines;
  for (const char* line : {"ab\tb", "abc\tc", "abcd\td"}) lines += std::string(line) + "\n";
  const std::string run = trained(folder, "--context 8 --task " + folder.file("three.tsv", lines));
  REQUIRE(headwise_program("study " + run + " --sequences 500 --json " + (folder / "j")).code == 0);
  CHECK(document(folder / "j")["settings"]["sequences"] <= 3);
}

TEST_CASE("a short text is studied as it is, and counted once where it repeats", "[cli][study]") {
  const Folder folder;
  const std::string run = trained(folder, "--steps 1 --context 16");
  const auto settings = [&](const std::string& text) {
    const std::string file = folder.file("text", text);
    const Result r =
        headwise_program("study " + run + " --data " + file + " --json " + (folder / "j"));
    REQUIRE(r.code == 0);
    const nlohmann::json found = document(folder / "j");
    CHECK(found["settings"]["held_out"].is_null());
    CHECK(found["settings"]["data"] == file);
    CHECK(found["texts"][0]["title"] ==
          fmt::format("{}, sequence 1 of {}", file, found["settings"]["sequences"].get<Index>()));
    CHECK_THAT(r.out, Catch::Contains(" of " + file + " of up to "));
    return found;
  };
  const nlohmann::json seven = settings("The cat");
  CHECK(seven["settings"]["length"] == 7);
  CHECK(seven["texts"][0]["tokens"] == nlohmann::json{"T", "h", "e", " ", "c", "a", "t"});
  std::string periodic;
  for (int i = 0; i < 400; ++i) periodic += "as";
  const nlohmann::json two = settings(periodic);
  CHECK(two["settings"]["sequences"] == 2);
  CHECK(two["settings"]["repeated_sequences"] == 2);
  CHECK(two["ablated_on"]["sequences"] == 2);
  CHECK(refusal(run + " --data " + folder.file("one", "T"), 1) ==
        "headwise: " + (folder / "one") + ": text: got 1 tokens, need at least 2\n");
}

TEST_CASE("a run with weights that are no numbers is refused", "[cli][study][errors]") {
  const Folder folder;
  const std::string run = trained(folder, "--context 16");
  Run opened = Run::open(run);
  std::vector<std::string> none;
  Decoder<float> model = load_model<float>(opened, none);
  model.ln_f.weight.value.data()[0] = std::numeric_limits<float>::quiet_NaN();
  save_model(opened, model);
  const Result r = headwise_program("study " + run + " --json " + (folder / "j"));
  CHECK(r.code == 1);
  CHECK(r.out.empty());
  CHECK(r.err.find("not all weights are finite: ln_f.weight") != std::string::npos);
  CHECK(!std::filesystem::exists(folder / "j"));
}

TEST_CASE("what cannot be studied is refused by name", "[cli][study][errors]") {
  const Folder folder;
  const std::string run = trained(folder, kRun + "--context 16");
  CHECK(refusal(run + " --sequences 0") == "headwise: --sequences: must be >= 1, got 0\n");
  CHECK(refusal(run + " --show 2.0") ==
        "headwise: --show: there is no head 2.0; the model has 2 layers of 2 heads, from 0.0 to "
        "1.1\n");
  CHECK(refusal(run + " --layers 0,2") == "headwise: --layers: 2 is not below 2\n");
  CHECK(refusal(run + " --heads x") ==
        "headwise: --heads: expected numbers such as 0,2,4-6, got 'x'\n");
  CHECK(refusal(run + " --range 5:5") ==
        "headwise: --range: expected A:B with 0 <= A < B, such as 10:50, got '5:5'\n");
  CHECK(refusal(run + " --range 20:") ==
        "headwise: --range: begins at 20, but the text has 16 tokens\n");
  CHECK(refusal(run + " --text abc --data x") == "headwise: --text: cannot be given with --data\n");
  CHECK(refusal(run + " --text 'Ann saw Ben and Ben.'") ==
        "headwise: --text: 20 tokens, need from 2 to the context of 16\n");
  CHECK(refusal(run + " --text 'A%b'", 1).find("headwise: --text: ") == 0);
  CHECK(refusal(run + " --text ''") == "headwise: --text: must not be empty\n");
  CHECK(refusal(run + " --json x --out x") == "headwise: --json: x is another option's file too\n");
  CHECK(refusal(run + " --out " + run + "/config.json") ==
        "headwise: --out: " + run + "/config.json is " + run +
            "/config.json, a file of the run; choose another\n");
  CHECK(refusal(run + " --show 0.0 --json " + (folder / "x")).find("cannot be given with") !=
        std::string::npos);
  CHECK(refusal(run + " --json " + (folder / "no/x"), 1).find("no/x") != std::string::npos);
  CHECK(!std::filesystem::exists(folder / "x"));
  CHECK(refusal(run + " --clean abc") == "headwise: --clean and --corrupt: need each other\n");
  CHECK(refusal(run + " --clean ab --corrupt abc")
            .starts_with("headwise: --corrupt: 3 tokens, but clean has 2"));
  CHECK(refusal("nowhere", 1).find("nowhere") != std::string::npos);
}
