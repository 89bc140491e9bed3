// The JSON files of a run's folder, one of them being the input.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/target.hpp"
#include "headwise/train/run.hpp"

namespace headwise::fuzz {
namespace {

/// A run of three tokens, made anew.
std::string new_run() {
  const std::string path = folder() + "/run";
  std::filesystem::remove_all(path);
  RunConfig config;
  config.model = {.vocab = 3, .layers = 1, .heads = 1, .width = 4, .context = 4};
  Run::create(path, config, Tokenizer::learn(TokenizerKind::character, "abc"));
  return path;
}

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

FUZZ_TARGET(config) {
  const std::string run = new_run(), path = run + "/config.json";
  file("run/config.json", input);
  accepted([&] {
    Run opened = Run::open(run);
    opened.change(opened.config().train, opened.config().loop, opened.config().blas);
    const std::string written = contents(path);
    Run again = Run::open(run);
    again.change(again.config().train, again.config().loop, again.config().blas);
    must(contents(path) == written, "what is written and read is written again");
  });
}

FUZZ_TARGET(tokenizer_json) {
  const std::string run = new_run();
  file("run/tokenizer.json", input);
  accepted([&] {
    const Run opened = Run::open(run);
    const std::string other = folder() + "/other";
    std::filesystem::remove_all(other);
    Run::create(other, opened.config(), opened.tokenizer());
    must(Run::open(other).tokenizer().tokens() == opened.tokenizer().tokens(),
         "what is written and read is the same");
  });
}

FUZZ_TARGET(log) {
  const std::string run = new_run(), path = run + "/log.jsonl";
  file("run/log.jsonl", input);
  accepted([&] {
    const Run opened = Run::open(run);
    opened.rewind_log(3, 2);
    const std::string kept = contents(path);
    opened.rewind_log(3, 2);
    must(contents(path) == kept, "what is dropped is dropped at once");
  });
}

}  // namespace headwise::fuzz
