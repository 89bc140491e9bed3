// What a command writes never replaces what it reads, nor a file that is not its own.
#include "cli/program.hpp"
#include "support/catch.hpp"

using namespace headwise::test;

namespace {

/// Runs a command that must refuse to write, and checks that the file keeps its bytes.
void check_kept(const std::string& file, const std::string& arguments, const std::string& reason) {
  CAPTURE(arguments);
  const std::string before = contents(file);
  const Result r = headwise_program(arguments);
  CHECK(r.code == 2);
  CHECK(r.out.empty());
  CHECK_THAT(r.err, Catch::Contains(reason));
  CHECK(contents(file) == before);
}

const std::string kForeign = "replace it with --force";

}  // namespace

TEST_CASE("study writes over its own files only", "[cli][guard]") {
  const Folder folder;
  const std::string run = trained(folder, "--context 8"),
                    study = "study --sequences 2 " + run + " ",
                    notes = folder.file("notes.txt", "my notes\n"), link = folder / "link";
  for (const std::string option : {"--json", "--out", "--patterns"})
    check_kept(notes, study + option + " " + notes, option + ": " + notes + " is there already");
  std::filesystem::create_symlink("notes.txt", link);
  check_kept(notes, study + "--json " + link, kForeign);

  // The run's files, by whatever path.
  const std::string weights = run + "/model.safetensors", hard = folder / "hard";
  std::filesystem::create_hard_link(weights, hard);
  std::filesystem::create_directory_symlink(run, folder / "also");
  for (const std::string& path : {weights, hard, folder / "also/model.safetensors"})
    check_kept(weights, study + "--force --patterns " + path, weights + ", a file of the run");

  // What was there before by the same option is replaced, and what is empty.
  const std::string document = folder / "j", page = folder / "p", patterns = folder.file("e", "");
  const std::string all =
      study + "--json " + document + " --out " + page + " --patterns " + patterns;
  REQUIRE(headwise_program(all).code == 0);
  const std::string before = contents(document);
  CHECK(headwise_program(all).code == 0);
  CHECK(contents(document) == before);
  CHECK(headwise_program(study + "--json /dev/null").code == 0);
  // But not by another option.
  check_kept(document, study + "--out " + document, "is no page that headwise wrote");
  check_kept(page, study + "--patterns " + page, "has no patterns that study wrote");
  check_kept(patterns, study + "--json " + patterns, "is no JSON that study wrote");

  CHECK(headwise_program(study + "--force --json " + notes).code == 0);
  CHECK(contents(notes) == before);
}

TEST_CASE("study does not write over the text that it reads", "[cli][guard]") {
  const Folder folder;
  const std::string run = trained(folder, "--context 8"), text = folder / "text";
  REQUIRE(headwise_program("study --sequences 2 " + run + " --json " + text).code == 0);
  // Its own earlier output, but now it is the text.
  const std::string study = "study --sequences 2 " + run + " --json " + text;
  check_kept(text, study + " --data " + text, "which this command reads");
  std::filesystem::create_hard_link(text, folder / "other");
  check_kept(text, study + " --data " + (folder / "other"), "which this command reads");
  const Result r = shell("\"$H\" " + study + " < " + text);
  CHECK(r.code == 2);
  CHECK_THAT(r.err, Catch::Contains("which this command reads"));
}

TEST_CASE("a gradient check's page replaces pages only", "[cli][guard]") {
  const Folder folder;
  const std::string run = trained(folder, "--context 8"),
                    notes = folder.file("notes.html", "<!DOCTYPE html>\n<title>Mine</title>\n"),
                    page = folder / "page.html";
  check_kept(notes, "gradcheck gelu --html " + notes, kForeign);
  check_kept(run + "/config.json",
             "gradcheck --force --run " + run + " --html " + run + "/config.json",
             "a file of the run");
  for (int i = 0; i < 2; ++i) CHECK(headwise_program("gradcheck gelu --html " + page).code == 0);
  CHECK(headwise_program("gradcheck gelu --force --html " + notes).code == 0);
  CHECK(contents(notes) == contents(page));
}

TEST_CASE("data replaces no file unless that is wanted", "[cli][guard]") {
  const Folder folder;
  const std::string text = folder.file("text", "mine"), data = "data copy --sentences 3 --out ";
  check_kept(text, data + text, kForeign);
  CHECK(headwise_program(data + text + " --force").code == 0);
  CHECK(contents(text) != "mine");
}

TEST_CASE("train writes no run over another tool's files", "[cli][guard]") {
  const Folder folder;
  const std::string out = folder / "model", config = out + "/config.json",
                    train = "train --steps 1" + kTiny + "--out " + out;
  std::filesystem::create_directory(out);
  (void)folder.file("model/config.json", "{\"architectures\": [\"GPT2LMHeadModel\"]}");
  (void)folder.file("model/model.safetensors", "weights");
  check_kept(config, train,
             "--out: " + out + " has config.json, model.safetensors, which headwise did not write");
  CHECK(contents(out + "/model.safetensors") == "weights");
  CHECK(headwise_program(train + " --force").code == 0);
  CHECK(headwise_program("eval --threads 1 " + out).code == 0);
}

TEST_CASE("train writes no run over the text that it reads", "[cli][guard]") {
  const Folder folder;
  // A text that is a run's configuration: by its content it might be replaced.
  const std::string out = folder / "run", train = "train --steps 1" + kTiny + "--out " + out;
  REQUIRE(headwise_program(train).code == 0);
  std::filesystem::remove(out + "/last.safetensors");
  check_kept(out + "/config.json", train + " --data " + out + "/config.json",
             "which this command reads");
  std::filesystem::create_hard_link(out + "/config.json", folder / "text");
  check_kept(out + "/config.json", train + " --data " + (folder / "text"),
             "which this command reads");
  CHECK(headwise_program(train).code == 0);
}
