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

using nlohmann::json;

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

/// A loss, and what it is of.
struct Measured {
  Loss loss;
  std::optional<double> bytes_per_token;  ///< of a text, not of a task's answers
  std::optional<bool> held_out;           ///< absent: a text of the user's, which may be anything
  std::string of;                         ///< as Source::evaluated_on() says
};

Measured measure_task(const Run& run, const auto& model) {
  const Material material = material_of_run(run, "");
  return {.loss = evaluate(model, *material.source, kAtOnce, kExamined / kAtOnce),
          .bytes_per_token = std::nullopt,
          .held_out = material.source->held_out(),
          .of = std::string(material.source->evaluated_on())};
}

Measured measure_text(const EvalCommand& c, const Run& run, const auto& model) {
  Measured m;
  std::vector<Id> tokens;
  if (c.data.empty()) {
    const Material material = material_of_run(run, "");
    tokens = dynamic_cast<const TextSource&>(*material.source).parts().valid.ids();
    m.held_out = material.source->held_out();
    m.of = material.source->evaluated_on();
  } else {
    GivenText given = given_text(run, c.data);
    tokens = std::move(given.tokens);
    m.held_out = given.held_out;
    m.of = given.what;
  }
  m.loss =
      about(c.data.empty() ? run.folder() : c.data, [&] { return evaluate_all(model, tokens); });
  const Index bytes = run.tokenizer().bytes(std::span<const Id>(tokens).subspan(1));
  m.bytes_per_token = static_cast<double>(bytes) / static_cast<double>(m.loss.tokens);
  return m;
}

/// "4 of 5 right (80.00 %)", or of draws "79.76 % right, of 4096 drawn".
std::string right_text(const Loss& loss) {
  const double percent = 100 * *loss.accuracy;
  return loss.each_once
             ? fmt::format("{} of {} right ({:.2f} %)", loss.right, loss.answers, percent)
             : fmt::format("{:.2f} % right, of {} drawn", percent, loss.answers);
}

void print(const EvalCommand& c, const Measured& m) {
  const double bits = m.loss.mean / std::numbers::ln2;
  const bool answers = m.loss.accuracy.has_value();
  std::optional<double> a_byte;
  if (m.bytes_per_token) a_byte = bits / *m.bytes_per_token;
  const auto number = [](std::optional<double> x) { return x ? json(*x) : json(); };
  if (c.json_lines)
    fmt::print("{}\n", json{{"event", "eval"},
                            {"loss", m.loss.mean},
                            {"bits_per_token", bits},
                            {"bits_per_byte", number(a_byte)},
                            {"perplexity", std::exp(m.loss.mean)},
                            {"accuracy", number(m.loss.accuracy)},
                            {"right", answers ? json(m.loss.right) : json()},
                            {"answers", answers ? json(m.loss.answers) : json()},
                            {"held_out", m.held_out ? json(*m.held_out) : json()},
                            {"tokens", m.loss.tokens}}
                           .dump());
  else
    fmt::print("loss {:.4f} nats, {:.4f} bits a token, {}perplexity {:.3f}, over {} tokens{}{}\n",
               m.loss.mean, bits, a_byte ? fmt::format("{:.4f} bits a byte, ", *a_byte) : "",
               std::exp(m.loss.mean), m.loss.tokens,
               m.held_out == false ? fmt::format(" of the {}", m.of) : "",
               answers ? "; " + right_text(m.loss) : "");
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
