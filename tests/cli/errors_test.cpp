// What a user sees who types something wrong: one line, exit code 1 or 2, nothing left behind.
#include <cmath>

#include "cli/program.hpp"
#include "headwise/core/safetensors.hpp"
#include "support/catch.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

struct Wrong {
  const char* arguments;
  const char* message;
};

void check_usage(const Wrong& wrong) {
  INFO(wrong.arguments);
  const Result r = headwise_program(wrong.arguments);
  CHECK(r.code == 2);
  CHECK(r.out.empty());
  CHECK_THAT(r.err, Catch::Contains(wrong.message));
  CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
}

}  // namespace

TEST_CASE("impossible settings are refused before any work (case 51)", "[cli][errors]") {
  const Wrong list[] = {
      {"train --lr 0", "headwise: --lr: must be finite and > 0, got 0"},
      {"train --lr -1", "headwise: --lr: must be finite and > 0, got -1"},
      {"train --lr abc", "headwise: --lr: expected a number, got 'abc'"},
      {"train --lr 1e-3x", "headwise: --lr: expected a number, got '1e-3x'"},
      {"train --lr 0,1", "headwise: --lr: expected a number, got '0,1'"},
      {"train --lr nan", "headwise: --lr: must be finite and > 0, got nan"},
      {"train --steps -5", "headwise: --steps: must be >= 1, got -5"},
      {"train --steps 1.5", "headwise: --steps: expected a whole number, got '1.5'"},
      {"train --batch 0", "headwise: --batch: must be in [1, 1048576], got 0"},
      {"train --hedas 4", "unknown argument '--hedas'"},
      {"train --data ''", "headwise: --data: must not be empty"},
      {"train --resume ''", "headwise: --resume: must not be empty"},
      {"train --init-from ''", "headwise: --init-from: must not be empty"},
      {"train --task ''", "headwise: --task: must not be empty"},
      {"train --preset ''", "headwise: --preset: must not be empty"},
      {"train --out= --seed=3", "headwise: --out: must not be empty"},
      {"gradcheck --run ''", "headwise: --run: must not be empty"},
      {"sample ''", "headwise: run: must not be empty"},
      {"study run --text ''", "headwise: --text: must not be empty"},
      {"train --heads 3 --width 10", "headwise: --heads: must divide width 10, got 3"},
      {"train --heads 0", "headwise: --heads: must be in [1, 16777216], got 0"},
      {"train --heads -1", "headwise: --heads: must be in [1, 16777216], got -1"},
      {"train --width 0", "headwise: --width: must be in [1, 16777216], got 0"},
      {"train --dropout 1", "headwise: --dropout: must be in [0, 1), got 1"},
      {"train --gelu relu", "headwise: --gelu: expected exact or tanh, got 'relu'"},
      {"train --dtype f16", "headwise: --dtype: expected f32 or f64, got 'f16'"},
      {"train --tokenizer bpe", "headwise: --tokenizer: expected char or byte or word, got 'bpe'"},
      {"train --tokenizer word --min-count 0", "headwise: --min-count: must be >= 1, got 0"},
      {"train --min-count 3", "headwise: --min-count: 3 is for --tokenizer word, not char"},
      {"train --tokenizer byte --min-count 2",
       "headwise: --min-count: 2 is for --tokenizer word, not byte"},
      {"train --threads 0x", "headwise: --threads: expected a whole number, got '0x'"},
      {"train --threads -1", "headwise: --threads: must be in [0, 1024], got -1"},
      {"gradcheck foo",
       "headwise: gradcheck: no op or layer is called 'foo'; known: abs, add, attention"},
      {"sample", "run"},
      {"sample /nonexistent --temperature -1",
       "headwise: --temperature: must be finite and >= 0, got -1"},
      {"sample /nonexistent --top-k -1", "headwise: --top-k: must be >= 0, got -1"},
      {"sample /nonexistent --top-p 0", "headwise: --top-p: must be in (0, 1], got 0"},
      {"train --schedule step",
       "headwise: --schedule: expected cosine or linear or constant or wsd, got 'step'"},
      {"train --freeze head.* --out /nonexistent",
       "headwise: --freeze: 'head.*' fits no parameter; some are tok.weight"},
      {"bench fly", "headwise: bench: expected train or attention or sample or gemm, got 'fly'"},
      {"bench", "what"},
      {"bench train --config tiny",
       "headwise: --config: 'tiny' is none of toy, nano, char, long, gpt2, transformer-base"},
      {"bench sample --config mha512", "headwise: --config: 'mha512' is none of toy"},
      {"bench attention --config toy",
       "headwise: --config: 'toy' is none of mha512, mha1024, mha512x1, mhalong"},
      {"bench train --seconds 0", "headwise: --seconds: must be in (0, 3600], got 0"},
      {"bench train --seconds nan", "headwise: --seconds: must be in (0, 3600], got nan"},
      {"bench train --context -1", "headwise: --context: must be in [0, 199999], got -1"},
      {"bench train --batch -1", "headwise: --batch: must be in [0, 1048576], got -1"},
      {"bench train --context 200000", "headwise: --context: must be in [0, 199999], got 200000"},
      {"bench attention --context 64", "headwise: --context: is for train and sample"},
      {"bench sample --batch 9", "headwise: --batch: must be at most 8 sequences, got 9"},
      {"bench attention --batch 2", "headwise: --batch: is for train and sample"},
      {"bench gemm --config toy", "headwise: --config: gemm has none, got 'toy'"},
      {"bench train --profile --json",
       "headwise: --profile: is for train and attention, without --json"},
      {"bench sample --profile", "headwise: --profile: is for train and attention"},
      {"fly", "unknown argument 'fly'"},
      {"", "subcommand"}};
  for (const Wrong& wrong : list) check_usage(wrong);
}

TEST_CASE("text that cannot be trained on is named, and no folder is left (cases 52, 53)",
          "[cli][errors]") {
  const Folder folder;
  const std::string out = folder / "run";
  const auto refused = [&](const std::string& arguments, const std::string& message) {
    INFO(arguments);
    const Result r = headwise_program("train --out " + out + " " + arguments);
    CHECK(r.code == 1);
    CHECK_THAT(r.err, Catch::Contains(message));
    CHECK_FALSE(std::filesystem::exists(out));
  };
  const std::string missing = folder / "missing.txt";
  refused("--data " + missing, "headwise: " + missing + ": no such file");
  refused("--data " + (folder / ""), "is a folder, not a file");
  const std::string empty = folder.file("empty.txt", "");
  refused("--data " + empty, "headwise: " + empty + ": is empty (0 bytes)");
  refused("--data " + folder.file("bom.txt", "\xEF\xBB\xBF"), "is empty but for a byte-order mark");
  refused("--context 64 --data " + folder.file("ten.txt", "0123456789"),
          "ten.txt: text: 10 tokens, need at least 65 (--context 64 and the token after)");
  refused("--context 8 --data " + folder.file("eight.txt", "abababab"),
          "text: 8 tokens, need at least 9");
  refused("--data " + folder.file("bytes.txt", "it\x92s"), "text: byte 2 (0x92) is not UTF-8");
}

TEST_CASE("one token more than the context is enough (case 52)", "[cli]") {
  const Folder folder;
  const std::string nine = folder.file("nine.txt", "ababababa");
  const Result r =
      headwise_program("train --steps 2 --out " + (folder / "run") + " --data " + nine + kTiny);
  CHECK(r.err.empty());
  CHECK(r.code == 0);
  CHECK_THAT(r.out, Catch::Contains("too short to keep a part for validation"));
}

TEST_CASE("a run folder is never overwritten", "[cli][errors]") {
  const Folder folder;
  const std::string run = folder / "run";
  REQUIRE(headwise_program("train --steps 1 --out " + run + kTiny).code == 0);
  const std::string before = contents(run + "/last.safetensors");
  const Result r = headwise_program("train --steps 2 --out " + run + kTiny);
  CHECK(r.code == 2);
  CHECK_THAT(r.err, Catch::Contains("headwise: --out: " + run + " holds a run already"));
  CHECK(contents(run + "/last.safetensors") == before);
}

TEST_CASE("what belongs to a run cannot change on --resume", "[cli][errors]") {
  const Folder folder;
  const std::string run = folder / "run";
  REQUIRE(headwise_program("train --steps 4 --stop-after 2 --out " + run + kTiny).code == 0);
  const Result lr = headwise_program("train --resume " + run + " --lr 0.1");
  CHECK(lr.code == 2);
  CHECK_THAT(lr.err, Catch::Contains("headwise: --lr: belongs to the run " + run));
  const Result tokenizer = headwise_program("train --resume " + run + " --tokenizer char");
  CHECK(tokenizer.code == 2);
  CHECK_THAT(tokenizer.err, Catch::Contains("headwise: --tokenizer: belongs to the run " + run));
  const Result count = headwise_program("train --resume " + run + " --min-count 2");
  CHECK(count.code == 2);
  CHECK_THAT(count.err, Catch::Contains("headwise: --min-count: belongs to the run " + run));
  const Result text = headwise_program("train --resume " + run + " --data " +
                                       folder.file("other.txt", "some other text, long enough"));
  CHECK(text.code == 1);
  CHECK_THAT(text.err, Catch::Contains("is not the one the run was started with"));
}

TEST_CASE("a prompt's unknown character is named with its place (case 59)", "[cli][errors]") {
  const Folder folder;
  const std::string run = folder / "run";
  const std::string data = folder.file("ab.txt", std::string(100, 'a') + std::string(100, 'b'));
  for (const std::string kind : {"char", "word"}) {
    const std::string out = run + kind;
    REQUIRE(headwise_program("train --steps 1 --tokenizer " + kind + " --out " + out + " --data " +
                             data + kTiny)
                .code == 0);
    const Result r = headwise_program("sample " + out + " --prompt ab\xC3\xBC");
    CHECK(r.code == 1);
    CHECK_THAT(r.err,
               Catch::Contains("character '\xC3\xBC' (U+00FC) at index 2 is not one of the 2 "
                               "characters"));
  }
}

TEST_CASE("weights that are not numbers stop a resumed run; its files stay as they were (case 50)",
          "[cli][errors]") {
  const Folder folder;
  const std::string run = folder / "run", last = run + "/last.safetensors";
  REQUIRE(headwise_program("train --steps 9 --stop-after 2 --out " + run + kTiny).code == 0);
  {  // the state again, with one weight that is no number
    const TensorFile state(last);
    TensorFileWriter changed;
    for (const auto& [name, entry] : state.entries()) {
      Tensor<float> x = state.tensor<float>(name);
      if (name == "weight/tok.weight") x.data()[x.size() - 1] = std::nanf("");
      changed.add(name, x);
    }
    for (const auto& [key, value] : state.metadata()) changed.metadata(key, value);
    changed.save(last);
  }
  const std::string bytes = contents(last);
  const Result r = headwise_program("train --resume " + run + " --threads 1");
  CHECK(r.code == 1);
  CHECK_THAT(r.err, Catch::Contains("step 3"));
  CHECK_THAT(r.err, Catch::Contains("learning rate"));
  CHECK(contents(last) == bytes);
}

TEST_CASE("a state of which one bit is another is refused, and stays", "[cli][errors]") {
  const Folder folder;
  const std::string run = folder / "run";
  REQUIRE(headwise_program("train --steps 9 --stop-after 2 --out " + run + kTiny).code == 0);
  for (const std::string name : {"last", "model"}) {
    const std::string file = run + "/" + name + ".safetensors", good = contents(file);
    std::string bytes = good;
    bytes[bytes.size() - 100] = static_cast<char>(bytes[bytes.size() - 100] ^ 4);
    std::ofstream(file, std::ios::binary) << bytes;
    const Result r = headwise_program(name == "last" ? "train --threads 1 --resume " + run
                                                     : "eval --threads 1 " + run);
    CHECK(r.code == 1);
    CHECK_THAT(r.err, Catch::Contains(file + ": damaged: tensor '"));
    CHECK(contents(file) == bytes);
    std::ofstream(file, std::ios::binary) << good;
  }
}

TEST_CASE("a run that fails before its first save leaves the folder free", "[cli][errors]") {
  const Folder folder;
  const std::string out = folder / "run";
  const Result r = headwise_program("train --steps 50 --lr 1e30 --clip 0 --out " + out + kTiny);
  CHECK(r.code == 1);
  CHECK_THAT(r.err, Catch::Contains("step ") && Catch::Contains("learning rate"));
  CHECK(headwise_program("train --steps 2 --out " + out + kTiny).code == 0);
}

TEST_CASE("a run cannot be resumed for fewer steps than it has done", "[cli][errors]") {
  const Folder folder;
  const std::string run = folder / "run";
  REQUIRE(headwise_program("train --steps 9 --out " + run + kTiny).code == 0);
  const std::string config = contents(run + "/config.json");
  const Result r = headwise_program("train --resume " + run + " --steps 5");
  CHECK(r.code == 2);
  CHECK_THAT(r.err, Catch::Contains("--steps: 5 is below the 9 steps that the run has done"));
  CHECK(contents(run + "/config.json") == config);
}

TEST_CASE("a run trained from standard input asks for its text by name", "[cli][errors]") {
  const Folder folder;
  const std::string run = folder / "run";
  REQUIRE(shell("head -c 300 /dev/zero | tr '\\0' ab | \"$H\" train --data - --steps 2 --out " +
                run + kTiny)
              .code == 0);
  const Result r = headwise_program("eval " + run + " </dev/null");
  CHECK(r.code == 2);
  CHECK_THAT(r.err, Catch::Contains("was trained from standard input; give its text again"));
}

TEST_CASE("output that cannot be written is a failure", "[cli][errors]") {
  CHECK(headwise_program("gradcheck sum >/dev/full").code == 1);
}
