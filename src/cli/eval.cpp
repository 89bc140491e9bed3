// headwise eval RUN: how well a trained model predicts a text.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "cli/load.hpp"
#include "cli/options.hpp"
#include "cli/run_text.hpp"

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

int eval_run(const EvalCommand& c) {
  const Run run = Run::open(c.run);
  const bool own = c.data.empty();
  const std::string text = own ? text_of_run(run, "") : text_of(c.data);
  std::vector<Id> tokens =
      about(own ? run.folder() : c.data, [&] { return run.tokenizer().encode(text); });
  if (own) tokens = split(tokens, run.config().model.context).valid;
  return with_model(run, [&](const auto& model) {
    const Loss loss = evaluate_all(model, tokens);
    require<Error>(std::isfinite(loss.mean), "{}: the loss is {}", run.model(), loss.mean);
    const Index predicted = run.tokenizer().bytes(std::span(tokens).subspan(1));
    const double bits = loss.mean / std::numbers::ln2;
    const double per_byte =
        bits * static_cast<double>(loss.tokens) / static_cast<double>(predicted);
    if (c.json_lines)
      fmt::print("{}\n", nlohmann::json{{"event", "eval"},
                                        {"loss", loss.mean},
                                        {"bits_per_token", bits},
                                        {"bits_per_byte", per_byte},
                                        {"perplexity", std::exp(loss.mean)},
                                        {"accuracy", nullptr},
                                        {"tokens", loss.tokens}}
                             .dump());
    else
      fmt::print(
          "loss {:.4f} nats, {:.4f} bits a token, {:.4f} bits a byte, perplexity {:.3f}, over {} "
          "tokens\n",
          loss.mean, bits, per_byte, std::exp(loss.mean), loss.tokens);
    return kDone;
  });
}

}  // namespace

std::function<int()> eval_command(CLI::App& app, CommonOptions& /*common*/) {
  const auto c = std::make_shared<EvalCommand>();
  app.add_option("run", c->run, "run folder")->required()->type_name("RUN");
  bind(app, *c);
  return [c] { return eval_run(*c); };
}

}  // namespace headwise::cli
