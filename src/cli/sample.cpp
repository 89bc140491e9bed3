// headwise sample RUN: continues a prompt.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/load.hpp"
#include "cli/options.hpp"
#include "cli/run_text.hpp"
#include "headwise/models/sample.hpp"

namespace headwise::cli {
namespace {

struct SampleCommand {
  std::string run;
  std::string prompt;
  Index tokens = 256;
  Drawing drawing;
  Index samples = 1;
  bool json_lines = false;

  void visit(auto&& v) {
    v("prompt", prompt, "text to continue; default: the start of a line");
    v("tokens", tokens, "tokens to add");
    drawing.visit(v);
    v("samples", samples, "how many samples; sample i does not depend on how many");
    v("json", json_lines, "JSON lines on stdout, nothing else");
  }
};

/// Streams of random numbers that nothing else draws from (the trainer numbers its own).
constexpr std::uint64_t kSamples = 3;

int sample_run(const SampleCommand& c, std::uint64_t seed) {
  require<UsageError>(c.tokens >= 1, "--tokens: {} is not 1 or more", c.tokens);
  require<UsageError>(c.samples >= 1, "--samples: {} is not 1 or more", c.samples);
  c.drawing.validate();
  const Run run = Run::open(c.run);
  const CharTokenizer& tokenizer = run.tokenizer();
  std::vector<Id> prompt = about("--prompt", [&] { return tokenizer.encode(c.prompt); });
  const auto context = run.config().model.context;
  if (static_cast<Index>(prompt.size()) > context)
    fmt::print(stderr, "note: the prompt has {} tokens, the model sees the last {}\n",
               prompt.size(), context);
  if (prompt.empty()) {  // a line's start, if the text had lines
    const auto& known = tokenizer.tokens();
    const auto newline = std::find(known.begin(), known.end(), "\n");
    prompt = {newline == known.end() ? Id{0} : static_cast<Id>(newline - known.begin())};
  }
  return with_model(run, [&](const auto& model) {
    for (Index i = 0; i < c.samples; ++i) {
      Rng rng(seed, kSamples << 48 | static_cast<std::uint64_t>(i));
      const auto text = [&](const std::vector<Id>& ids) { return tokenizer.decode(ids); };
      if (c.json_lines) {
        const auto ids = sample(model, prompt, c.tokens, c.drawing, rng);
        fmt::print("{}\n",
                   nlohmann::json{{"event", "sample"}, {"index", i}, {"text", c.prompt + text(ids)}}
                       .dump());
        continue;
      }
      if (c.samples > 1) fmt::print("--- sample {}\n", i);
      fmt::print("{}", c.prompt);
      sample(model, prompt, c.tokens, c.drawing, rng, [&](Id id) {
        fmt::print("{}", text({id}));
        std::fflush(stdout);
        return true;
      });
      fmt::print("\n");
    }
    return kDone;
  });
}

}  // namespace

std::function<int()> sample_command(CLI::App& app, CommonOptions& common) {
  const auto c = std::make_shared<SampleCommand>();
  app.add_option("run", c->run, "run folder")->required()->type_name("RUN");
  bind(app, *c);
  return [c, &common] { return sample_run(*c, common.seed); };
}

}  // namespace headwise::cli
