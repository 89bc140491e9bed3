// headwise bench train|attention|sample|gemm: speed on this machine, and its share of the
// machine's.
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
  Index context = 0, batch = 0;
  double seconds = 10;
  bool profile = false, json_lines = false;

  void visit(auto&& v) {
    v("config", config, "toy nano char long gpt2; attention: mha512 mha1024 mha512x1 mhalong");
    v("context", context, "train: another context than the configuration's; 0: its own");
    v("batch", batch, "train: another batch than the configuration's; 0: its own");
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
  long peak_mb = 0;         ///< before the machine's own rate is measured
  double flops = 0;         ///< of one piece, attention counted whole, as everybody counts
  double causal_flops = 0;  ///< of what a causal mask leaves to do; 0: not known
};

void print(const BenchCommand& c, const Result& r, double gemm) {
  const auto per_second = [&](double x) { return x / r.time.median; };
  const auto known = [](double x, bool is) { return is ? json(x) : json(nullptr); };
  const double share = per_second(r.causal_flops) / 1e9 / gemm;
  const bool counted = r.flops > 0;
  if (c.json_lines) {
    json line = {{"engine", fmt::format("headwise {}", HEADWISE_VERSION)},
                 {"mode", name_of(r.mode)},
                 {"config", r.config},
                 {"threads", threads()},
                 {"params", r.parameters},
                 {"ms", r.time.median * 1e3},
                 {"min_ms", r.time.least * 1e3},
                 {"tokens_per_second", per_second(static_cast<double>(r.tokens))},
                 {"gflops", known(per_second(r.flops) / 1e9, counted)},
                 {"peak_rss_mb", r.peak_mb},
                 {"gemm_gflops", gemm},
                 {"share", known(share, counted)},
                 {"blas", blas_description()}};
    fmt::print("{}\n", line.dump());
    return;
  }
  fmt::print("{} {}: {:.3f} ms median, {:.3f} least; {:.0f} tokens/s on {} thread(s)\n",
             name_of(r.mode), r.config, r.time.median * 1e3, r.time.least * 1e3,
             per_second(static_cast<double>(r.tokens)), threads());
  if (counted)
    fmt::print(
        "{:.1f} GFLOP/s; without the masked half of attention {:.1f}, {:.2f} of this machine's "
        "{:.0f} "
        "in plain products\n",
        per_second(r.flops) / 1e9, per_second(r.causal_flops) / 1e9, share, gemm);
  fmt::print("{} parameters, {} MB at most in memory; {}\n", r.parameters, r.peak_mb,
             blas_description());
}

/// Where the time of a step goes, the largest part first.
void print(const Profile& profile) {
  struct Line {
    std::string name;
    Cost cost;
  };
  std::vector<Line> lines;
  double total = 0;
  Index steps = 0;
  for (const auto& [name, row] : profile.rows()) {
    if (row.backward.calls == 0) {
      lines.push_back({name, row.forward});
    } else {
      lines.push_back({name + ", forward", row.forward});
      lines.push_back({name + ", backward", row.backward});
    }
    total += row.forward.seconds + row.backward.seconds;
    if (name == "AdamW") steps = row.forward.calls;
  }
  std::sort(lines.begin(), lines.end(),
            [](const Line& a, const Line& b) { return a.cost.seconds > b.cost.seconds; });
  fmt::print("\n{:26} {:>9} {:>6} {:>9} {:>8} {:>6}\n", "a step", "ms", "%", "GFLOP/s", "GB/s",
             "calls");
  for (const auto& [name, cost] : lines) {
    const auto rate = [&](double amount) {
      return amount == 0 ? std::string("-") : fmt::format("{:.1f}", amount / cost.seconds / 1e9);
    };
    fmt::print("{:26} {:9.3f} {:6.1f} {:>9} {:>8} {:6}\n", name,
               cost.seconds / static_cast<double>(steps) * 1e3, 100 * cost.seconds / total,
               rate(cost.flops), rate(cost.bytes), cost.calls / steps);
  }
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
Preset measured(const BenchCommand& c) {
  Preset p = preset_named(c.config.empty() ? "toy" : c.config);
  if (p.name == "gpt2") p.model.context = 64;
  if (c.context != 0) p.model.context = c.context;
  if (c.batch != 0) p.batch = c.batch;
  p.model.validate();
  return p;
}

std::vector<Id> random_text(Index vocab, Rng& rng) {
  std::vector<Id> text;
  for (Index i = 0; i < 200'000; ++i) text.push_back(static_cast<Id>(rng.below(vocab)));
  return text;
}

int bench_train(const BenchCommand& c, std::uint64_t seed) {
  const Preset preset = measured(c);
  Rng rng(seed);
  Decoder<float> model(preset.model, rng);
  const Split text{.train = random_text(preset.model.vocab, rng), .valid = {}};
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
  r.peak_mb = peak_rss_mb();
  print(c, r, gemm_rate(0.5));
  if (c.profile) {
    Profile profile;
    trainer.profile(&profile);
    measure(c.seconds, [&] { trainer.step(); });
    print(profile);
  }
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
  r.peak_mb = peak_rss_mb();
  print(c, r, gemm_rate(0.5));
  return kDone;
}

/// Token by token through the whole window, as sample does.
int bench_sample(const BenchCommand& c, std::uint64_t seed) {
  const Preset preset = measured(c);
  Rng rng(seed);
  const Decoder<float> model(preset.model, rng);
  Result r{.mode = Mode::sample, .config = std::string(preset.name)};
  r.parameters = parameter_count(const_cast<Decoder<float>&>(model));
  r.tokens = preset.model.context;
  r.time = measure(c.seconds, [&] { sample(model, {0}, r.tokens, 1, rng); });
  r.peak_mb = peak_rss_mb();
  print(c, r, gemm_rate(0.5));
  return kDone;
}

/// What the BLAS reaches with the kernels it has now: what every share is a share of.
struct Rates {
  double large = 0;  ///< GFLOP/s of (2048,2048) times (2048,2048)
  double small = 0;  ///< GFLOP/s of (768,128) times (128,512), a linear layer of nano
  double row = 0;    ///< GB/s of one row through a (50257,768) weight
};

Rates rates(double seconds) {
  return {gemm_rate(seconds / 3), product_rate(768, 512, 128, seconds / 3),
          4e-9 * 50257 * 768 * product_rate(1, 50257, 768, seconds / 3) * 1e9 /
              product_flops(1, 50257, 768)};
}

int bench_gemm(const BenchCommand& c) {
  const Rates r = rates(c.seconds);
  const double read = read_rate(c.seconds / 3);
  if (c.json_lines) {
    fmt::print("{}\n", json{{"engine", fmt::format("headwise {}", HEADWISE_VERSION)},
                            {"mode", "gemm"},
                            {"threads", threads()},
                            {"gflops", r.large},
                            {"small_gflops", r.small},
                            {"row_gb_per_second", r.row},
                            {"read_gb_per_second", read},
                            {"kernel", blas_kernel()},
                            {"blas", blas_description()}}
                           .dump());
    return kDone;
  }
  return kDone;
}

}  // namespace

std::function<int()> bench_command(CLI::App& app, CommonOptions& common) {
  const auto c = std::make_shared<BenchCommand>();
  app.add_option("what", c->mode, "train, attention, sample or gemm")
      ->required()
      ->type_name("WHAT");
  bind(app, *c);
  return [c, &common] {
    require<UsageError>(c->seconds > 0 && c->seconds <= 3600, "--seconds: {} is not in (0, 3600]",
                        c->seconds);
    switch (parse<Mode>("bench", c->mode)) {
      case Mode::train:
        return bench_train(*c, common.seed);
      case Mode::attention:
        return bench_attention(*c, common.seed);
      case Mode::sample:
        return bench_sample(*c, common.seed);
      case Mode::gemm:
        return bench_gemm(*c);
    }
    return kUsage;
  };
}

}  // namespace headwise::cli
