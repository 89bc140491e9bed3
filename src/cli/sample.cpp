// headwise sample RUN: continues a prompt.
#include "headwise/models/sample.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/load.hpp"
#include "cli/material.hpp"
#include "cli/message.hpp"
#include "cli/options.hpp"
#include "cli/prompt.hpp"
#include "cli/text_stream.hpp"
#include "headwise/core/printable.hpp"

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
    v("prompt", prompt, "text to continue; default: the start of a line, or a task's question");
    v("tokens", tokens, "tokens to add");
    drawing.visit(v);
    v("samples", samples, "how many samples; sample i does not depend on how many");
    v("json", json_lines,
      "JSON lines on stdout, nothing else; bytes that are not UTF-8 become U+FFFD");
  }
};

/// Samples [first, first + n), drawn side by side. The first is shown as it is drawn, the others
/// when all are done.
template <Real T>
void show_samples(const SampleCommand& c, const Run& run, const Task* task, const Decoder<T>& model,
                  std::uint64_t seed, Index first, Index n) {
  std::vector<Rng> rngs;
  std::vector<Prompt> prompts;
  std::vector<std::vector<Id>> tokens;
  for (Index i = first; i < first + n; ++i) {
    rngs.push_back(stream(seed, Purpose::samples, i));
    prompts.push_back(prompt_of(run, task, c.prompt, rngs.back()));
    tokens.push_back(prompts.back().tokens);
  }
  const auto context = static_cast<std::size_t>(model.config.context);
  if (first == 0 && tokens[0].size() > context)
    print_message("note: the prompt has {} tokens, the model sees the last {}\n", tokens[0].size(),
                  context);
  if (first == 0 && prompts[0].stand_in)
    print_message("note: the prompt is empty; what follows the token \"{}\" is written\n",
                  printable(*prompts[0].stand_in));
  TextStream out;
  const auto begin = [&](Index i) {
    if (c.samples > 1) fmt::print("--- sample {}\n", first + i);
    fmt::print("{}", out.take(prompts[static_cast<std::size_t>(i)].text));
  };
  if (!c.json_lines) begin(0);
  const auto drawn =
      sample(model, tokens, c.tokens, c.drawing, std::span(rngs), [&](Index i, Id id) {
        const Prompt& p = prompts[static_cast<std::size_t>(i)];
        const bool on = !p.go_on || p.go_on(id);
        if (i == 0 && on && !c.json_lines) {
          fmt::print("{}", out.take(run.tokenizer().decode({id})));
          flush_output();
        }
        return on;
      });
  for (Index i = 0; i < n; ++i) {
    const Prompt& p = prompts[static_cast<std::size_t>(i)];
    std::vector<Id> ids = drawn[static_cast<std::size_t>(i)];
    if (p.go_on && !p.go_on(ids.back())) ids.pop_back();
    const std::string text = run.tokenizer().decode(ids);
    if (c.json_lines) {
      nlohmann::json line = {{"event", "sample"}, {"index", first + i}, {"text", p.text + text}};
      if (p.stand_in) line["after"] = *p.stand_in;
      fmt::print("{}\n",  // JSON is UTF-8; what a model of bytes writes need not be
                 line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
      continue;
    }
    if (i > 0) {
      begin(i);
      fmt::print("{}", out.take(text));
    }
    fmt::print("{}\n", out.end());
  }
}

int sample_run(const SampleCommand& c, std::uint64_t seed) {
  require<UsageError>(c.tokens >= 1, "--tokens: must be >= 1, got {}", c.tokens);
  require<UsageError>(c.samples >= 1, "--samples: must be >= 1, got {}", c.samples);
  c.drawing.validate();
  const Run run = Run::open(c.run);
  std::unique_ptr<const Task> task;
  if (!run.config().task.empty()) task = task_of(run);
  Rng rng(seed);
  (void)prompt_of(run, task.get(), c.prompt, rng);  // wrong before the weights are read
  return with_model(run, [&](const auto& model) {
    for (Index first = 0; first < c.samples; first += kFewRows)
      show_samples(c, run, task.get(), model, seed, first, std::min(kFewRows, c.samples - first));
    return kDone;
  });
}

}  // namespace

Action sample_command(Arguments& args, CommonOptions& common) {
  const auto c = std::make_shared<SampleCommand>();
  args.add_required("run", "RUN", "run folder", c->run);
  args.bind(*c);
  args.may_be_empty("--prompt");
  return [c, &common] { return sample_run(*c, common.seed); };
}

}  // namespace headwise::cli
