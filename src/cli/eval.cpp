// headwise eval RUN: how well a trained model predicts a text, or does its task.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "cli/load.hpp"
#include "cli/material.hpp"
#include "cli/options.hpp"

namespace headwise::cli {
namespace {

struct EvalCommand {
  std::string run, data;
  bool json_lines = false;

  void visit(auto&& v) {
    v("data", data, "text to predict; default: the run's own validation part");
    v("json", json_lines, "JSON lines on stdout, nothing else");
  }
};

/// Sequences that a task's model is examined with.
constexpr Index kExamined = 4096, kAtOnce = 64;

/// A loss, and how many bytes a token has: of a text, not of a task's answers.
struct Measured {
  Loss loss;
  std::optional<double> bytes_per_token;
};

Measured measure_task(const Run& run, const auto& model) {
  const Material material = material_of_run(run, "");
  return {evaluate(model, *material.source, kAtOnce, kExamined / kAtOnce), std::nullopt};
}

Measured measure_text(const EvalCommand& c, const Run& run, const auto& model) {
  std::vector<Id> tokens;
  if (c.data.empty()) {
    const Material material = material_of_run(run, "");
    tokens = dynamic_cast<const TextSource&>(*material.source).parts().valid.ids();
  } else {
    tokens = about(c.data, [&] { return run.tokenizer().encode(read_text(c.data)); });
  }
  const Loss loss =
      about(c.data.empty() ? run.folder() : c.data, [&] { return evaluate_all(model, tokens); });
  const Index bytes = run.tokenizer().bytes(std::span<const Id>(tokens).subspan(1));
  return {loss, static_cast<double>(bytes) / static_cast<double>(loss.tokens)};
}

void print(const EvalCommand& c, const Measured& m) {
  const double bits = m.loss.mean / std::numbers::ln2;
  const std::optional<double> right = m.loss.accuracy;
  std::optional<double> a_byte;
  if (m.bytes_per_token) a_byte = bits / *m.bytes_per_token;
  const auto number = [](std::optional<double> x) {
    return x ? nlohmann::json(*x) : nlohmann::json(nullptr);
  };
  if (c.json_lines)
    fmt::print("{}\n", nlohmann::json{{"event", "eval"},
                                      {"loss", m.loss.mean},
                                      {"bits_per_token", bits},
                                      {"bits_per_byte", number(a_byte)},
                                      {"perplexity", std::exp(m.loss.mean)},
                                      {"accuracy", number(right)},
                                      {"tokens", m.loss.tokens}}
                           .dump());
  else
    fmt::print("loss {:.4f} nats, {:.4f} bits a token, {}perplexity {:.3f}, over {} tokens{}\n",
               m.loss.mean, bits, a_byte ? fmt::format("{:.4f} bits a byte, ", *a_byte) : "",
               std::exp(m.loss.mean), m.loss.tokens,
               right ? fmt::format("; {:.2f} % right", 100 * *right) : "");
}

int eval_run(const EvalCommand& c) {
  const Run run = Run::open(c.run);
  const bool task = !run.config().task.empty();
  require<UsageError>(!task || c.data.empty(),
                      "--data: {}, but {} was trained on the task {}, not on a text", c.data,
                      run.folder(), run.config().task);
  return with_model(run, [&](const auto& model) {
    const Measured m = task ? measure_task(run, model) : measure_text(c, run, model);
    require<Error>(std::isfinite(m.loss.mean), "{}: the loss is {}", run.model(), m.loss.mean);
    print(c, m);
    return kDone;
  });
}

}  // namespace

Action eval_command(Arguments& args, CommonOptions& /*common*/) {
  const auto c = std::make_shared<EvalCommand>();
  args.add_required("run", "RUN", "run folder", c->run);
  args.bind(*c);
  return [c] { return eval_run(*c); };
}

}  // namespace headwise::cli
