// headwise bench train|attention|sample|gemm: speed on this machine, and its share of the
// machine's.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/bench_gemm.hpp"
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
    v("config", config,
      "toy nano char long gpt2 transformer-base bert-base bert-large induction; attention: mha512 "
      "mha1024 mha512x1 mhalong");
    v("context", context, "train, sample: another context than the configuration's; 0: its own");
    v("batch", batch,
      "train: another batch than the configuration's; sample: texts side by side (1)");
    v("seconds", seconds, "time to measure for");
    v("profile", profile,
      "train, attention: where the time of a step goes, by op; measures as long again");
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
  double causal_flops = 0;  ///< of what a causal mask leaves to do, without tables looked up
  double weight_bytes = 0;  ///< of weights read in one piece; 0: not counted
};

void print(const BenchCommand& c, const Result& r, const Peak& peak) {
  const double gemm = peak.gflops;
  const auto per_second = [&](double x) { return x / r.time.median; };
  const auto known = [](double x, bool is) { return is ? json(x) : json(nullptr); };
  const double share = per_second(r.causal_flops) / 1e9 / gemm;
  const bool counted = r.flops > 0, reads = r.weight_bytes > 0;
  const double read = reads ? read_rate(0.5) : 1, weights = per_second(r.weight_bytes) / 1e9;
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
    if (reads) {
      line["weights_gb_per_second"] = weights;
      line["read_gb_per_second"] = read;
    }
    fmt::print("{}\n", line.dump());
    return;
  }
  fmt::print("{} {}: {:.3f} ms median, {:.3f} least; {:.0f} tokens/s on {} thread(s)\n",
             name_of(r.mode), r.config, r.time.median * 1e3, r.time.least * 1e3,
             per_second(static_cast<double>(r.tokens)), threads());
  if (counted)
    fmt::print(
        "{:.1f} GFLOP/s; without the masked half of attention {:.1f}, {:.2f} of this machine's "
        "{:.0f} in plain products{}\n",
        per_second(r.flops) / 1e9, per_second(r.causal_flops) / 1e9, share, gemm, peak.note);
  if (reads)
    fmt::print("weights read at {:.1f} GB/s, {:.2f} of the {:.1f} that memory gives\n", weights,
               weights / read, read);
  fmt::print("{} parameters, {} MB at most in memory; {}\n", r.parameters, r.peak_mb,
             blas_description());
}

/// Where the time of a step goes, the largest part first.
void print(const Profile& profile, Index steps, double seconds) {
  struct Line {
    std::string name;
    Cost cost;
  };
  std::vector<Line> lines;
  double total = 0;
  for (const auto& [name, row] : profile.rows()) {
    if (row.backward.calls == 0) {
      lines.push_back({name, row.forward});
    } else {
      lines.push_back({name + ", forward", row.forward});
      lines.push_back({name + ", backward", row.backward});
    }
    total += row.forward.seconds + row.backward.seconds;
  }
  lines.push_back({"all else, and waiting", {.calls = steps, .seconds = seconds - total}});
  total = seconds;
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

/// Measures again, with a profile, and prints it.
void profile_of(const BenchCommand& c, FunctionRef<void(Profile&)> step) {
  Profile profile;
  Index steps = 0;
  const auto start = std::chrono::steady_clock::now();
  measure(c.seconds, [&] {
    step(profile);
    ++steps;
  });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  print(profile, steps, took.count());
}

/// The preset as speed is measured: gpt2 at 64 tokens.
Preset measured(const BenchCommand& c) {
  Preset p = preset("--config", c.config.empty() ? "toy" : c.config);
  if (p.name == "gpt2") p.model.context = 64;
  if (c.context != 0) p.model.context = c.context;
  if (c.batch != 0) p.batch = c.batch;
  p.model.validate();
  return p;
}

constexpr Index kTextTokens = 200'000;

std::vector<Id> random_text(Index vocab, Rng& rng) {
  std::vector<Id> text;
  for (Index i = 0; i < kTextTokens; ++i) text.push_back(static_cast<Id>(rng.below(vocab)));
  return text;
}

int bench_train(const BenchCommand& c, std::uint64_t seed) {
  const Preset preset = measured(c);
  Rng rng(seed);
  Decoder<float> model(preset.model, rng);
  const TextSource text(Split{.train = random_text(preset.model.vocab, rng), .valid = {}},
                        preset.model.context);
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
  r.causal_flops =
      training_flops(preset.model, r.parameters - looked_up(preset.model), r.tokens, true);
  r.time = measure(c.seconds, [&] { trainer.step(); });
  r.peak_mb = peak_rss_mb();
  print(c, r, gemm_peak(0.5));
  if (c.profile)
    profile_of(c, [&](Profile& profile) {
      trainer.profile(&profile);
      trainer.step();
      trainer.profile(nullptr);
    });
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
  const auto step = [&](Profile* profile) {
    for_each_param(layer, [](const std::string&, auto& p) { p.grad = {}; });
    Tape<float> tape(profile);
    const Ctx<float> ctx{.tape = &tape};
    tape.backward(sum(layer(ctx, tape.leaf(x))));
  };
  r.time = measure(c.seconds, [&] { step(nullptr); });
  r.peak_mb = peak_rss_mb();
  print(c, r, gemm_peak(0.5));
  if (c.profile) profile_of(c, [&](Profile& profile) { step(&profile); });
  return kDone;
}

/// Token by token through the whole window, as sample does, for one text or several side by side.
int bench_sample(const BenchCommand& c, std::uint64_t seed) {
  const Preset preset = measured(c);
  const Index texts = c.batch == 0 ? 1 : c.batch;
  require<UsageError>(texts <= kFewRows, "--batch: must be at most {} sequences, got {}", kFewRows,
                      texts);
  Rng rng(seed);
  Decoder<float> model(preset.model, rng);
  const std::vector<std::vector<Id>> prompts(static_cast<std::size_t>(texts), {0});
  std::vector<Rng> rngs;
  for (Index i = 0; i < texts; ++i) rngs.emplace_back(seed, static_cast<std::uint64_t>(i));
  Result r{.mode = Mode::sample, .config = std::string(preset.name)};
  const Index tokens = preset.model.context;
  r.parameters = parameter_count(model);
  r.tokens = texts * tokens;
  r.weight_bytes =
      static_cast<double>(tokens * (r.parameters - looked_up(preset.model))) * sizeof(float);
  r.time = measure(c.seconds, [&] { sample(model, prompts, tokens, {}, std::span(rngs)); });
  r.peak_mb = peak_rss_mb();
  print(c, r, gemm_peak(0.5));
  return kDone;
}

}  // namespace

Action bench_command(Arguments& args, CommonOptions& common) {
  const auto c = std::make_shared<BenchCommand>();
  args.add_required("what", "WHAT", "train, attention, sample or gemm", c->mode);
  args.bind(*c);
  return [c, &common] {
    require<UsageError>(c->seconds > 0 && c->seconds <= 3600,
                        "--seconds: must be in (0, 3600], got {}", c->seconds);
    const Mode mode = parse<Mode>("bench", c->mode);
    require<UsageError>(
        !c->profile || ((mode == Mode::train || mode == Mode::attention) && !c->json_lines),
        "--profile: is for train and attention, without --json");
    require<UsageError>(mode != Mode::gemm || c->config.empty(),
                        "--config: gemm has none, got '{}'", c->config);
    require<UsageError>(mode == Mode::train || mode == Mode::sample || c->context == 0,
                        "--context: is for train and sample");
    require<UsageError>(mode == Mode::train || mode == Mode::sample || c->batch == 0,
                        "--batch: is for train and sample");
    require<UsageError>(c->context >= 0 && c->context < kTextTokens,
                        "--context: must be in [0, {}], got {}", kTextTokens - 1, c->context);
    require<UsageError>(c->batch >= 0 && c->batch <= 1 << 20, "--batch: must be in [0, {}], got {}",
                        1 << 20, c->batch);
    switch (mode) {
      case Mode::train:
        return bench_train(*c, common.seed);
      case Mode::attention:
        return bench_attention(*c, common.seed);
      case Mode::sample:
        return bench_sample(*c, common.seed);
      case Mode::gemm:
        return bench_gemm(c->seconds, c->json_lines);
    }
    return kUsage;
  };
}

}  // namespace headwise::cli
