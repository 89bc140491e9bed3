// headwise bench train|attention|sample|gemm: speed on this machine, and its share of the machine's.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/options.hpp"
#include "cli/speed.hpp"
#include "headwise/core/gemm.hpp"
#include "headwise/core/parallel.hpp"
#include "headwise/models/presets.hpp"
#include "headwise/models/sample.hpp"
#include "headwise/train/trainer.hpp"

namespace headwise::cli {
namespace {

using nlohmann::json;

enum class Mode { train, attention, sample, gemm };
constexpr std::array<std::string_view, 4> names_of(Mode) {
  return {"train", "attention", "sample", "gemm"};
}

struct BenchCommand {
  std::string mode;
  std::string config;
  double seconds = 10;
  bool profile = false, json_lines = false;

  void visit(auto&& v) {
    v("config", config, "toy nano char long gpt2; attention: mha512 mha1024 mha512x1 mhalong");
    v("seconds", seconds, "time to measure for");
    v("profile", profile, "train: where the time of a step goes, by op");
    v("json", json_lines, "one JSON line on stdout, nothing else");
  }
};

/// What was measured.
struct Result {
  Mode mode = Mode::train;
  std::string config;
  Index parameters = 0, tokens = 0;  ///< tokens of one piece of work
  Timing time{};
  double flops = 0;         ///< of one piece, attention counted whole, as everybody counts
  double causal_flops = 0;  ///< of what a causal mask leaves to do; 0: not known
};

void print(const BenchCommand& c, const Result& r, double gemm) {
  const auto per_second = [&](double x) { return x / r.time.median; };
  const double share = per_second(r.causal_flops) / 1e9 / gemm;
  if (c.json_lines) {
    json line = {{"engine", fmt::format("headwise {}", HEADWISE_VERSION)},
                 {"mode", name_of(r.mode)},
                 {"config", r.config},
                 {"threads", threads()},
                 {"params", r.parameters},
                 {"ms", r.time.median * 1e3},
                 {"min_ms", r.time.least * 1e3},
                 {"tokens_per_second", per_second(static_cast<double>(r.tokens))},
                 {"gflops", per_second(r.flops) / 1e9},
                 {"peak_rss_mb", peak_rss_mb()},
                 {"gemm_gflops", gemm},
                 {"share", share},
                 {"blas", blas_description()}};
    fmt::print("{}\n", line.dump());
    return;
  }
  fmt::print("{} {}: {:.3f} ms median, {:.3f} least; {:.0f} tokens/s on {} thread(s)\n",
             name_of(r.mode), r.config, r.time.median * 1e3, r.time.least * 1e3,
             per_second(static_cast<double>(r.tokens)), threads());
  fmt::print("{:.1f} GFLOP/s; without the masked half of attention {:.1f}, {:.2f} of this machine's {:.0f} "
             "in plain products\n",
             per_second(r.flops) / 1e9, per_second(r.causal_flops) / 1e9, share, gemm);
  fmt::print("{} parameters, {} MB at most in memory; {}\n", r.parameters, peak_rss_mb(),
             blas_description());
}

const Preset& preset_named(const std::string& name) {
  std::vector<std::string_view> known;
  for (const Preset& p : presets()) {
    if (p.name == name) return p;
    known.push_back(p.name);
  }
  throw UsageError(fmt::format("--config: '{}' is none of {}", name, fmt::join(known, ", ")));
}

/// The preset as speed is measured: gpt2 at 64 tokens.
Preset measured(const std::string& name) {
  Preset p = preset_named(name.empty() ? "toy" : name);
  if (p.name == "gpt2") p.model.context = 64;
  return p;
}

int bench_train(const BenchCommand& c, std::uint64_t seed) {
  const Preset preset = measured(c.config);
  Rng rng(seed);
  Decoder<float> model(preset.model, rng);
  Split text;
  for (Index i = 0; i < 200'000; ++i)
    text.train.push_back(static_cast<Id>(rng.below(preset.model.vocab)));
  TrainOptions options;
  options.batch = preset.batch;
  options.lr = options.min_lr = 3e-4;
  options.warmup = 0;
  options.steps = 1'000'000'000;
  options.eval_every = options.steps;
  Trainer<float> trainer(model, options, text, seed);

  Result r{.mode = Mode::train, .config = std::string(preset.name)};
  r.parameters = parameter_count(model);
  r.tokens = preset.batch * preset.model.context;
  r.flops = training_flops(preset.model, r.parameters, r.tokens, false);
  r.causal_flops = training_flops(preset.model, r.parameters, r.tokens, true);
  r.time = measure(c.seconds, [&] { trainer.step(); });
  print(c, r, gemm_rate(0.5));
  return kDone;
}

/// Forward and backward of one causal layer, as torch.nn.MultiheadAttention is measured.
int bench_attention(const BenchCommand& c, std::uint64_t seed) {
  struct Layer {
    const char* name;
    Index width, heads, batch, context;
  };
  static constexpr Layer kLayers[] = {{"mha512", 512, 8, 8, 512},
                                      {"mha1024", 1024, 16, 4, 512},
                                      {"mha512x1", 512, 1, 8, 512},
                                      {"mhalong", 512, 8, 1, 2048}};
  const Layer* found = nullptr;
  for (const Layer& l : kLayers)
    if (c.config == l.name || (c.config.empty() && found == nullptr)) found = &l;
  require<UsageError>(found != nullptr,
                      "--config: '{}' is none of mha512, mha1024, mha512x1, mhalong", c.config);
  Rng rng(seed);
  MultiHeadAttention<float> layer({.width = found->width, .heads = found->heads}, rng);
  const auto x = normal_tensor<float>({found->batch, found->context, found->width}, 1, rng);

  Result r{.mode = Mode::attention, .config = found->name};
  r.parameters = parameter_count(layer);
  r.tokens = found->batch * found->context;
  ModelConfig shape;
  shape.layers = 1;
  shape.width = found->width;
  shape.context = found->context;
  r.flops = training_flops(shape, r.parameters, r.tokens, false);
  r.causal_flops = training_flops(shape, r.parameters, r.tokens, true);
  r.time = measure(c.seconds, [&] {
    for_each_param(layer, [](const std::string&, auto& p) { p.grad = {}; });
    Tape<float> tape;
    const Ctx<float> ctx{.tape = &tape};
    tape.backward(sum(layer(ctx, tape.leaf(x))));
  });
  print(c, r, gemm_rate(0.5));
  return kDone;
}

}  // namespace

std::function<int()> bench_command(CLI::App& app, CommonOptions& common) {
  const auto c = std::make_shared<BenchCommand>();
  app.add_option("what", c->mode, "train, attention, sample or gemm")->required()->type_name("WHAT");
  bind(app, *c);
  return [c, &common] {
    require<UsageError>(c->seconds > 0 && c->seconds <= 3600, "--seconds: {} is not in (0, 3600]",
                        c->seconds);
    switch (parse<Mode>("bench", c->mode)) {
      case Mode::train: return bench_train(*c, common.seed);
      case Mode::attention: return bench_attention(*c, common.seed);
      case Mode::sample: return kDone;
      case Mode::gemm: return kDone;
    }
    return kUsage;
  };
}

}  // namespace headwise::cli
