// headwise train: from a text to a run folder.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/run_text.hpp"
#include "cli/speed.hpp"
#include "headwise/core/gemm.hpp"
#include "headwise/core/parallel.hpp"
#include "headwise/models/presets.hpp"
#include "headwise/train/run.hpp"
#include "kernels/isa.hpp"

namespace headwise::cli {
namespace {

using nlohmann::json;

struct TrainCommand {
  CLI::App* app = nullptr;
  CommonOptions* common = nullptr;
  std::string data, out, resume;
  ModelConfig model;
  TrainOptions train;
  Dtype dtype = Dtype::f32;
  TokenizerKind tokenizer = TokenizerKind::character;
  Index min_count = 2;
  Index save_every = 0, stop_after = 0;
  bool json_lines = false;

  void visit(auto&& v) {
    v("data", data, "text to train on, '-': standard input; default: the built-in stories");
    v("out", out, "folder for the run; default: runs/1, runs/2, ...");
    v("resume", resume, "run folder to go on with");
    v("tokenizer", tokenizer, "what a token is: char, byte or word");
    v("min-count", min_count, "words: how often the text must have one for it to be a token");
    v("dtype", dtype, "precision: f32 or f64");
    v("save-every", save_every, "steps between saved states; 0: at each evaluation");
    v("stop-after", stop_after, "stop after this many steps of this call, saved; 0: do not");
    v("json", json_lines, "JSON lines on stdout, nothing else");
  }

  [[nodiscard]] bool given(const char* option) const { return app->count(option) > 0; }
};

/// Set by Ctrl-C: finish the step, save, stop. A second one kills at once.
volatile std::sig_atomic_t interrupted = 0;

extern "C" void on_interrupt(int signal) {
  interrupted = 1;
  static constexpr char kSaid[] = "\nstopping after this step; once more to stop at once\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kSaid, sizeof kSaid - 1);
  std::signal(signal, SIG_DFL);
}

/// Mean speed of training since the start.
class Speed {
 public:
  explicit Speed(Index tokens_per_step) : per_step_(tokens_per_step) {}
  void step() { steps_ += 1; }
  /// Time that was not training.
  template <class F>
  auto pause(F f) {
    const auto from = Clock::now();
    auto result = f();
    paused_ += Clock::now() - from;
    return result;
  }
  [[nodiscard]] double seconds() const { return seconds_between(start_, Clock::now()); }
  [[nodiscard]] double tokens_per_second() const {
    const double training = seconds() - std::chrono::duration<double>(paused_).count();
    return static_cast<double>(steps_ * per_step_) / std::max(training, 1e-9);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double seconds_between(Clock::time_point a, Clock::time_point b) {
    return std::chrono::duration<double>(b - a).count();
  }
  Clock::time_point start_ = Clock::now();
  Clock::duration paused_{};
  Index per_step_, steps_ = 0;
};

std::string free_folder() {
  for (Index i = 1;; ++i) {
    std::string folder = fmt::format("runs/{}", i);
    if (!std::filesystem::exists(folder)) return folder;
  }
}

/// "; 84 GFLOP/s, 0.55 of this machine's 152 in plain products" at that speed of training.
template <Real T>
std::string share_text(const Run& run, Decoder<T>& model, double tokens_per_second) {
  if (run.config().dtype != Dtype::f32) return "";  // the machine's rate is measured in float
  const ModelConfig& c = run.config().model;
  const double rate =
      tokens_per_second / 1e9 * training_flops(c, parameter_count(model) - looked_up(c), 1, true);
  const double gemm = gemm_rate(0.1);
  return fmt::format("; {:.0f} GFLOP/s, {:.2f} of this machine's {:.0f} in plain products", rate,
                     rate / gemm, gemm);
}

/// What the user should know before the first step.
template <Real T>
void describe(const Run& run, Decoder<T>& model, const Split& text) {
  const ModelConfig& m = run.config().model;
  Index decayed = 0, plain = 0, decayed_tensors = 0, plain_tensors = 0;
  for_each_param(model, [&](const std::string&, const Param<T>& p) {
    (is_decayed(p) ? decayed : plain) += p.value.size();
    (is_decayed(p) ? decayed_tensors : plain_tensors) += 1;
  });
  fmt::print("text        {} tokens to train on, {} to validate on; {}\n", text.train.size(),
             text.valid.size(), vocabulary_text(run.tokenizer(), text.train));
  if (text.shared)
    fmt::print(
        "            the text is too short to keep a part for validation: both are all of it\n");
  fmt::print("model       {} layers, {} heads, width {}, context {}: {} parameters\n", m.layers,
             m.heads, m.width, m.context, decayed + plain);
  fmt::print("optimiser   AdamW: {} matrices ({} numbers) decay by {}, {} vectors ({}) do not\n",
             decayed_tensors, decayed, run.config().train.weight_decay, plain_tensors, plain);
  fmt::print("machine     {} thread(s), {}, {}\n", threads(), kernels::isa_name(),
             blas_description());
  fmt::print("run         {}\n\n", run.folder());
}

void print_evaluation(const TrainCommand& c, const EvalRecord& e, const std::string& line,
                      const Speed& speed) {
  if (c.json_lines)
    fmt::print("{}\n", line);
  else
    fmt::print("step {:6}  train {:.4f}  val {:.4f}{}  lr {:.2e}  {:.0f} tokens/s  {}\n", e.step,
               e.train_loss, e.val_loss, e.best ? "*" : " ", e.lr, speed.tokens_per_second(),
               clock_text(speed.seconds()));
  std::fflush(stdout);
}

template <Real T>
void print_best(const TrainCommand& c, const Run& run, const Trainer<T>& trainer, Decoder<T>& model,
                const Speed& speed) {
  const double seconds = speed.seconds(),
               rate = speed.tokens_per_second();  // before more is measured
  std::string fast;
  if (rate > 0) fast = fmt::format("; {:.0f} tokens/s{}", rate, share_text(run, model, rate));
  fmt::print("\nbest validation loss {:.4f} after {}{}\ntry\n  {} sample {}\n",
             trainer.best_val_loss(), clock_text(seconds), fast, c.common->program, run.folder());
}

template <Real T>
void print_end(const TrainCommand& c, const Run& run, const Trainer<T>& trainer, Decoder<T>& model,
               const Speed& speed) {
  const auto number = [](double x) { return std::isfinite(x) ? json(x) : json(nullptr); };
  if (c.json_lines)
    fmt::print("{}\n", json{{"event", "done"},
                            {"steps", trainer.steps_done()},
                            {"val_loss", number(trainer.val_loss())},
                            {"best_val_loss", number(trainer.best_val_loss())},
                            {"parameters", parameter_count(model)},
                            {"tokens_per_second", speed.tokens_per_second()},
                            {"seconds", speed.seconds()},
                            {"run", run.folder()}}
                           .dump());
  else if (!trainer.done() || trainer.evaluation_due())
    fmt::print("stopped at step {} of {}, saved; go on with\n  {} train --resume {}\n",
               trainer.steps_done(), run.config().train.steps, c.common->program, run.folder());
  else
    print_best(c, run, trainer, model, speed);
}

/// Steps, evaluates and saves until the run is done or somebody wants it to stop. The state is
/// saved before an evaluation too: that may take long, and whoever stops it loses nothing.
template <Real T>
void train_loop(const TrainCommand& c, const Run& run, Trainer<T>& trainer, Decoder<T>& model) {
  const TrainOptions& options = run.config().train;
  const Index first = trainer.steps_done();
  Speed speed(options.batch * options.accumulate * run.config().model.context);
  Progress progress(options.steps, first);
  const auto save = [&](bool best) {
    speed.pause([&] { return save_run(run, trainer, model, best), 0; });
  };
  const auto stop = [&] {
    return interrupted != 0 || (c.stop_after > 0 && trainer.steps_done() - first >= c.stop_after);
  };
  while (true) {
    if (trainer.evaluation_due()) {
      const auto e = speed.pause([&] { return trainer.evaluate([] { return interrupted == 0; }); });
      if (!e) break;
      const std::string line = json{{"event", "eval"},
                                    {"step", e->step},
                                    {"train_loss", e->train_loss},
                                    {"val_loss", e->val_loss},
                                    {"lr", e->lr},
                                    {"tokens_per_second", speed.tokens_per_second()}}
                                   .dump();
      run.log(line);
      save(e->best);
      progress.clear();
      print_evaluation(c, *e, line, speed);
    }
    if (trainer.done() || stop()) break;
    const StepRecord record = trainer.step();
    speed.step();
    progress.show(record.step, record.loss, speed.tokens_per_second());
    const bool due = c.save_every > 0 && record.step % c.save_every == 0;
    if (due || trainer.evaluation_due() || stop()) save(false);
  }
  progress.clear();
  print_end(c, run, trainer, model, speed);
}

/// Everything that can be wrong is found before there is a folder: `run` is called last.
template <Real T>
int train_with(const TrainCommand& c, const RunConfig& config, const Split& text,
               const std::function<Run()>& run, const std::string& resumed) {
  Rng init(config.seed);
  Decoder<T> model(config.model, init);
  Trainer<T> trainer(model, config.train, text, config.seed);
  if (!resumed.empty()) {
    trainer.load(resumed);
    require<UsageError>(config.train.steps >= trainer.steps_done(),
                        "--steps: {} is below the {} steps that the run has done",
                        config.train.steps, trainer.steps_done());
  }
  const Run folder = run();
  if (!resumed.empty()) folder.forget_after(trainer.evaluated());
  if (!c.json_lines) describe(folder, model, text);
  std::signal(SIGINT, on_interrupt);
  train_loop(c, folder, trainer, model);
  std::signal(SIGINT, SIG_DFL);
  return kDone;
}

int train_in_precision(const TrainCommand& c, const RunConfig& config, const Split& text,
                       const std::function<Run()>& run, const std::string& resumed = "") {
  return config.dtype == Dtype::f64 ? train_with<double>(c, config, text, run, resumed)
                                    : train_with<float>(c, config, text, run, resumed);
}

/// Goes on with a run: what it was started with stays, but for how long and how often.
int resume(TrainCommand& c) {
  static constexpr const char* kMayChange[] = {"--resume",     "--data",         "--steps",
                                               "--eval-every", "--eval-batches", "--save-every",
                                               "--stop-after", "--json",         "--threads"};
  Run run = Run::open(c.resume);
  for (const CLI::Option* option : c.app->get_options()) {
    const std::string name = fmt::format("--{}", option->get_single_name());
    const bool free =
        std::find(std::begin(kMayChange), std::end(kMayChange), name) != std::end(kMayChange);
    require<UsageError>(free || option->count() == 0,
                        "{}: belongs to the run {} and cannot change on --resume", name, c.resume);
  }
  RunConfig config = run.config();
  if (!config.blas.empty() && config.blas != blas_description())
    fmt::print(stderr,
               "note: the run was started with {}, this is {}: it goes on, but not with the same "
               "bits as there\n",
               config.blas, blas_description());
  if (c.given("--steps")) config.train.steps = c.train.steps;
  if (c.given("--eval-every")) config.train.eval_every = c.train.eval_every;
  if (c.given("--eval-batches")) config.train.eval_batches = c.train.eval_batches;
  config.train.validate();
  const std::string text = text_of_run(run, c.data);
  const Split parts = split(run.tokenizer().encode(text), config.model.context);
  if (!config.blas.ends_with(blas_description()))
    config.blas += (config.blas.empty() ? "" : ", then ") + blas_description();
  const auto reopened = [&] {
    run.change(config.train, config.blas);
    return run;
  };
  return train_in_precision(c, config, parts, reopened, run.last());
}

int start(TrainCommand& c) {
  if (!c.given("--min-lr")) c.train.min_lr = c.train.lr / 10;
  c.train.validate();
  require<UsageError>(c.tokenizer == TokenizerKind::word || !c.given("--min-count"),
                      "--min-count: is for --tokenizer word");
  check_min_count(c.min_count);
  ModelConfig checked = c.model;
  checked.vocab = 1;  // the rest is wrong or right before any text is read
  checked.validate();
  const std::string text = text_of(c.data);
  RunConfig config{.model = c.model,
                   .train = c.train,
                   .dtype = c.dtype,
                   .seed = c.common->seed,
                   .data = lasting_path(c.data),
                   .data_hash = text_hash(text),
                   .blas = blas_description()};
  return about(c.data.empty() ? "the built-in stories" : c.data, [&] {
    const Tokenizer tokenizer = Tokenizer::learn(c.tokenizer, text, c.min_count);
    const Split parts = split(tokenizer.encode(text), c.model.context);
    if (text.find('\r') != std::string::npos)
      fmt::print(stderr,
                 "note: the text has carriage returns (\\r); they are kept as characters\n");
    config.model.vocab = tokenizer.vocab();
    return [&c, config, parts, tokenizer] {
      return train_in_precision(c, config, parts, [&] {
        return Run::create(c.out.empty() ? free_folder() : c.out, config, tokenizer);
      });
    };
  })();
}

}  // namespace

std::function<int()> train_command(CLI::App& app, CommonOptions& common) {
  const auto c = std::make_shared<TrainCommand>();
  c->app = &app;
  c->common = &common;
  bind(app, *c);
  bind(app, c->model);
  bind(app, c->train);
  app.get_option("--min-lr")->default_str("a tenth of --lr");
  return [c] {
    require<UsageError>(c->save_every >= 0, "--save-every: {} is not 0 or more", c->save_every);
    require<UsageError>(c->stop_after >= 0, "--stop-after: {} is not 0 or more", c->stop_after);
    return c->resume.empty() ? start(*c) : resume(*c);
  };
}

}  // namespace headwise::cli
