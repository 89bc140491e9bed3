// The commands of a whole job, run as a user runs them.
#include "cli/program.hpp"
#include "support/catch.hpp"

using namespace headwise::test;
using nlohmann::json;

namespace {

/// log.jsonl without what depends on time.
std::vector<json> run_log(const std::string& run) {
  std::vector<json> all = lines(contents(run + "/log.jsonl"));
  for (json& line : all) line.erase("tokens_per_second");
  return all;
}

void same_run(const std::string& a, const std::string& b) {
  CHECK(contents(a + "/last.safetensors") == contents(b + "/last.safetensors"));
  CHECK(contents(a + "/model.safetensors") == contents(b + "/model.safetensors"));
  CHECK(run_log(a) == run_log(b));
}

}  // namespace

TEST_CASE("train, sample, eval and info work on one run folder", "[cli]") {
  const Folder folder;
  const std::string run = folder / "run";
  const Result train =
      headwise_program("train --json --steps 6 --eval-every 3 --out " + run + kTiny);
  REQUIRE(train.code == 0);
  CHECK(train.err.empty());
  const std::vector<json> events = lines(train.out);
  REQUIRE(events.size() == 3);
  CHECK(events[0]["event"] == "eval");
  CHECK(events[0]["step"] == 3);
  for (const char* key : {"train_loss", "val_loss", "lr", "tokens_per_second"})
    CHECK(events[0][key].is_number());
  CHECK(events[2]["event"] == "done");
  CHECK(events[2]["steps"] == 6);
  CHECK(events[2]["run"] == run);
  for (const char* key :
       {"val_loss", "best_val_loss", "parameters", "tokens_per_second", "seconds"})
    CHECK(events[2][key].is_number());
  CHECK(lines(contents(run + "/log.jsonl")) == std::vector<json>(events.begin(), events.end() - 1));
  for (const char* file :
       {"config.json", "tokenizer.json", "last.safetensors", "model.safetensors"})
    CHECK(std::filesystem::exists(run + "/" + file));

  const Result eval = headwise_program("eval --json " + run);
  REQUIRE(eval.code == 0);
  const json e = lines(eval.out).at(0);
  CHECK(e["event"] == "eval");
  CHECK(e["bits_per_token"].get<double>() == Approx(e["loss"].get<double>() / 0.6931471805599453));
  CHECK(e["perplexity"].get<double>() == Approx(std::exp(e["loss"].get<double>())));
  CHECK(e["bits_per_byte"] == e["bits_per_token"]);  // the stories are ASCII
  CHECK(e["accuracy"].is_null());

  const Result info = headwise_program("info " + run);
  CHECK(info.code == 0);
  CHECK_THAT(info.out, Catch::Contains("blocks.0.attn.w_q.weight") && Catch::Contains("(8,8)"));
}

TEST_CASE("what is evaluated on the training text says so", "[cli]") {
  const Folder folder;
  const std::string text = folder.file("short.txt", "It is said again. It is said."),
                    run = folder / "run";
  Result r =
      headwise_program("train --steps 2 --study-every 1 --out " + run + " --data " + text + kTiny);
  REQUIRE(r.code == 0);
  CHECK_THAT(r.out, Catch::Contains("  training text ") &&
                        Catch::Contains("best loss on the training text "));
  CHECK_THAT(r.out, !Catch::Contains(" val ") && !Catch::Contains("to validate on") &&
                        !Catch::Contains("best validation"));
  for (const json& line : lines(contents(run + "/log.jsonl")))
    if (line["event"] == "eval") CHECK(line["held_out"] == false);
  for (const std::string& data : {std::string(), " --data " + text}) {
    r = headwise_program("eval " + run + data);
    CHECK_THAT(r.out, Catch::Contains("tokens of the training text\n"));
    CHECK(lines(headwise_program("eval --json " + run + data).out).at(0)["held_out"] == false);
  }
  r = headwise_program("eval " + run + " --data " + folder.file("other.txt", "It is."));
  CHECK_THAT(r.out, Catch::Contains("over 5 tokens\n"));
  r = headwise_program("study " + run + " --json " + (folder / "j"));
  CHECK_THAT(r.out, Catch::Contains(" 3 sequences of the training text of up to 8 tokens"));
  const json found = json::parse(contents(folder / "j"));
  CHECK(found["settings"]["held_out"] == false);
  CHECK(found["texts"][0]["title"] == "training text, sequence 1 of 3");
  CHECK(found["timeline"].back()["held_out"] == false);
  // Where a part is held back, all is as ever.
  const std::string whole = folder / "whole";
  r = headwise_program("train --json --steps 2 --out " + whole + kTiny);
  for (const json& line : lines(r.out)) CHECK(line["held_out"] == true);
  CHECK(lines(headwise_program("eval --json " + whole).out).at(0)["held_out"] == true);
  CHECK_THAT(headwise_program("study " + whole).out,
             Catch::Contains(" held-out sequences of up to"));
}

TEST_CASE("sample i does not depend on how many are drawn", "[cli]") {
  const Folder folder;
  const std::string run = folder / "run";
  REQUIRE(headwise_program("train --steps 2 --out " + run + kTiny).code == 0);
  const std::string same = "sample --json --prompt The --tokens 20 --seed 5 " + run;
  const std::vector<json> one = lines(headwise_program(same).out);
  const std::vector<json> three = lines(headwise_program(same + " --samples 3").out);
  REQUIRE(three.size() == 3);
  CHECK(one.at(0) == three[0]);
  CHECK(three[0]["text"] != three[1]["text"]);
  CHECK(three[0]["text"].get<std::string>().substr(0, 3) == "The");
  const std::vector<json> ten = lines(headwise_program(same + " --samples 10").out);
  REQUIRE(ten.size() == 10);  // more than go side by side
  for (std::size_t i = 0; i < 10; ++i) CHECK(ten[i]["index"] == i);
  CHECK(std::equal(three.begin(), three.end(), ten.begin()));
  CHECK(ten[8]["text"] != ten[0]["text"]);
}

TEST_CASE("a run that stops and resumes is the same run (case 65)", "[cli]") {
  const Folder folder;
  const std::string straight = folder / "straight", parts = folder / "parts";
  const std::string options = " --steps 20 --eval-every 5 --dropout 0.1 --out ";
  REQUIRE(headwise_program("train" + options + straight + kTiny).code == 0);
  REQUIRE(headwise_program("train --stop-after 12" + options + parts + kTiny).code == 0);
  const Result resumed = headwise_program("train --threads 1 --resume " + parts);
  CHECK(resumed.err.empty());
  REQUIRE(resumed.code == 0);
  same_run(straight, parts);
}

TEST_CASE("the files of a run do not depend on the number of threads", "[cli]") {
  const Folder folder;
  const auto train = [&](const std::string& name, int threads) {
    return headwise_program(
        "train --layers 2 --heads 2 --width 32 --context 48 --batch 4 --steps 6 "
        "--eval-every 3 --eval-batches 2 --dropout 0.1 --threads " +
        std::to_string(threads) + " --out " + (folder / name));
  };
  REQUIRE(train("one", 1).code == 0);
  REQUIRE(train("two", 2).code == 0);
  REQUIRE(train("four", 4).code == 0);
  same_run(folder / "one", folder / "two");
  same_run(folder / "one", folder / "four");
}

TEST_CASE("Ctrl-C saves first, and the run goes on as if nothing had happened", "[cli]") {
  const Folder folder;
  const std::string straight = folder / "straight", broken = folder / "broken";
  const std::string options = " --steps 6000 --eval-every 6000 --out ";
  const Result r = shell("env --default-signal=INT \"$H\" train --save-every 100" + options +
                         broken + kTiny + " & until [ -f " + broken +
                         "/last.safetensors ]; do sleep 0.01; done; kill -INT $!; wait $!");
  CHECK(r.code == 0);
  CHECK_THAT(r.out, Catch::Contains("headwise train --resume " + broken));
  REQUIRE(headwise_program("train --threads 1 --resume " + broken).code == 0);
  REQUIRE(headwise_program("train" + options + straight + kTiny).code == 0);
  same_run(straight, broken);
}

TEST_CASE("text comes from standard input, too", "[cli]") {
  const Folder folder;
  const std::string text = "the cat sat on the mat and the dog sat on the log, said the cat again";
  const std::string run = folder / "run";
  const Result r =
      shell("echo '" + text + "' | \"$H\" train --data - --steps 2 --out " + run + kTiny);
  CHECK(r.code == 0);
  CHECK(std::filesystem::exists(run + "/model.safetensors"));
}

TEST_CASE("a run of each tokenizer trains, resumes, samples and is evaluated", "[cli]") {
  const Folder folder;
  const std::pair<std::string, std::string> kinds[] = {
      {"char", " different characters, 1.00 bytes a token"},
      {"byte", "; 256 byte values, 1.00 bytes a token"},
      {"word", " words and characters, "}};
  for (const auto& [kind, said] : kinds) {
    CAPTURE(kind);
    const std::string straight = folder / kind, parts = straight + "-parts";
    const std::string options = " --steps 2 --eval-every 1 --tokenizer " + kind + " --out ";
    const Result train = headwise_program("train" + options + straight + kTiny);
    REQUIRE(train.code == 0);
    CHECK_THAT(train.out, Catch::Contains(said));
    REQUIRE(headwise_program("train --stop-after 1" + options + parts + kTiny).code == 0);
    REQUIRE(headwise_program("train --threads 1 --resume " + parts).code == 0);
    same_run(straight, parts);

    const Result sample = headwise_program("sample --json --tokens 50 " + straight);
    REQUIRE(sample.code == 0);
    CHECK_FALSE(lines(sample.out).at(0)["text"].get<std::string>().empty());
    CHECK(headwise_program("sample --tokens 50 --prompt 'The boats' " + straight).code == 0);

    const Result eval = headwise_program("eval --json " + straight);
    REQUIRE(eval.code == 0);
    const json e = lines(eval.out).at(0);
    const auto bytes_a_token = e["bits_per_token"].get<double>() / e["bits_per_byte"].get<double>();
    CHECK((kind == "word" ? bytes_a_token > 2 : bytes_a_token == 1));
  }
}

TEST_CASE("carriage returns and a byte-order mark are told of (cases 55, 56)", "[cli]") {
  const Folder folder;
  const auto said = [&](const std::string& name, const std::string& text) {
    const std::string file = folder.file(name, text);
    const Result r = headwise_program(
        "train --steps 1 --threads 1 --layers 1 --heads 1 --width 4 "
        "--context 2 --batch 1 --eval-batches 1 --data " +
        file + " --out " + (folder / ("run-" + name)));
    CHECK(r.code == 0);
    return r.out;
  };
  CHECK_THAT(said("a", "a\r\nb\r\n"), Catch::Contains("has carriage returns (\\r)"));
  CHECK_THAT(said("b",
                  "\xEF\xBB\xBF"
                  "ab\nab\n"),
             Catch::Contains("byte-order mark at its start"));
  const std::string plain = said("c", "ab\nab\n");
  CHECK_THAT(plain, !Catch::Contains("carriage") && !Catch::Contains("byte-order"));
  CHECK_THAT(plain, Catch::Contains("; 3 different characters, 1.00 bytes a token"));
}

TEST_CASE("any bytes can be trained on and sampled as JSON (case 57)", "[cli]") {
  const Folder folder;
  const std::string run = folder / "run";
  std::string bytes;
  for (int i = 0; i < 300; ++i) bytes += "it\x92s";
  const std::string data = folder.file("bytes.txt", bytes);
  REQUIRE(
      headwise_program("train --steps 2 --tokenizer byte --out " + run + " --data " + data + kTiny)
          .code == 0);
  const std::string sample = "sample --tokens 40 --prompt it\x92s " + run;
  CHECK(headwise_program(sample).out.substr(0, 4) == "it\x92s");
  const Result r = headwise_program(sample + " --json");
  REQUIRE(r.code == 0);
  CHECK(lines(r.out).at(0)["text"].get<std::string>().substr(0, 6) == "it\uFFFDs");
  CHECK(headwise_program("eval " + run + " --data " + data).code == 0);
}

TEST_CASE("gradcheck prints a line a case and fails on nothing", "[cli]") {
  const Result r = headwise_program("gradcheck --json gelu linear");
  REQUIRE(r.code == 0);
  const std::vector<json> all = lines(r.out);
  CHECK(all.back() ==
        json{{"event", "done"}, {"passed", all.size() - 1}, {"failed", 0}, {"inconclusive", 0}});
  CHECK(all[0]["event"] == "check");
  CHECK(all[0]["verdict"] == "pass");
  for (const char* key :
       {"name", "case", "dtype", "elements", "skipped", "worst", "where", "analytic", "numeric"})
    CHECK(all[0].contains(key));
}

TEST_CASE("Ctrl-C during an evaluation loses nothing", "[cli]") {
  const Folder folder;
  const std::string straight = folder / "straight", broken = folder / "broken";
  const std::string options = " --steps 40 --eval-every 20 --out ";
  const Result r = shell("env --default-signal=INT \"$H\" train" + options + broken + kOthers +
                         " --eval-batches 100000000 & until [ -f " + broken +
                         "/last.safetensors ]; do sleep 0.01; done; kill -INT $!; wait $!");
  CHECK(r.code == 0);
  REQUIRE(headwise_program("train --threads 1 --eval-batches 2 --resume " + broken).code == 0);
  REQUIRE(headwise_program("train" + options + straight + kTiny).code == 0);
  same_run(straight, broken);
}
