// headwise train: from a text to a run folder.
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/run_text.hpp"
#include "headwise/core/gemm.hpp"
#include "headwise/core/parallel.hpp"
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
  Index save_every = 0, stop_after = 0;
  bool json_lines = false;

  void visit(auto&& v) {
    v("data", data, "text to train on, '-': standard input; default: the built-in stories");
    v("out", out, "folder for the run; default: runs/1, runs/2, ...");
    v("resume", resume, "run folder to go on with");
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
  std::signal(signal, SIG_DFL);
}

/// Speed since the last reading.
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

/// What the user should know before the first step.
template <Real T>
void describe(const Run& run, Decoder<T>& model, const Split& text) {
  const ModelConfig& m = run.config().model;
  Index decayed = 0, plain = 0, decayed_tensors = 0, plain_tensors = 0;
  for_each_param(model, [&](const std::string&, const Param<T>& p) {
    (is_decayed(p) ? decayed : plain) += p.value.size();
    (is_decayed(p) ? decayed_tensors : plain_tensors) += 1;
  });
  fmt::print("text        {} tokens to train on, {} to validate on; {} different characters\n",
             text.train.size(), text.valid.size(), m.vocab);
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

template <Real T>
int train_loop(const TrainCommand& c, const Run& run, const Split& text, bool resumed) {
  const TrainOptions& options = run.config().train;
  Rng init(run.config().seed);
  Decoder<T> model(run.config().model, init);
  Trainer<T> trainer(model, options, text, run.config().seed);
  if (resumed) {
    trainer.load(run.last());
    run.forget_after(trainer.steps_done());
  }
  if (!c.json_lines) describe(run, model, text);

  std::signal(SIGINT, on_interrupt);
  const Index first = trainer.steps_done();
  Speed speed(options.batch * options.accumulate * run.config().model.context);
  Progress progress(options.steps, first);
  const auto stop = [&] {
    return interrupted != 0 || (c.stop_after > 0 && trainer.steps_done() - first >= c.stop_after);
  };
  while (!trainer.done() && !stop()) {
    const StepRecord record = trainer.step();
    speed.step();
    progress.show(record.step, record.loss, speed.tokens_per_second());
    const bool evaluates = record.step % options.eval_every == 0 || trainer.done();
    bool best = false;
    if (evaluates) {
      const EvalRecord e = speed.pause([&] { return trainer.evaluate(); });
      best = e.best;
      const std::string line = json{{"event", "eval"},
                                    {"step", e.step},
                                    {"train_loss", e.train_loss},
                                    {"val_loss", e.val_loss},
                                    {"lr", e.lr},
                                    {"tokens_per_second", speed.tokens_per_second()}}
                                   .dump();
      run.log(line);
      progress.clear();
      if (c.json_lines)
        fmt::print("{}\n", line);
      else
        fmt::print("step {:6}  train {:.4f}  val {:.4f}{}  lr {:.2e}  {:.0f} tokens/s  {}\n",
                   e.step, e.train_loss, e.val_loss, e.best ? "*" : " ", e.lr,
                   speed.tokens_per_second(), clock_text(speed.seconds()));
      std::fflush(stdout);
    }
    const bool saves = c.save_every > 0 && record.step % c.save_every == 0;
    if (evaluates || saves || stop()) save_run(run, trainer, model, best);
  }
  progress.clear();
  std::signal(SIGINT, SIG_DFL);

  if (c.json_lines) {
    const auto number = [](double x) { return std::isfinite(x) ? json(x) : json(nullptr); };
    fmt::print("{}\n", json{{"event", "done"},
                            {"steps", trainer.steps_done()},
                            {"val_loss", number(trainer.val_loss())},
                            {"best_val_loss", number(trainer.best_val_loss())},
                            {"parameters", parameter_count(model)},
                            {"tokens_per_second", speed.tokens_per_second()},
                            {"seconds", speed.seconds()},
                            {"run", run.folder()}}
                           .dump());
  } else if (!trainer.done()) {
    fmt::print("stopped at step {} of {}, saved; go on with\n  {} train --resume {}\n",
               trainer.steps_done(), options.steps, c.common->program, run.folder());
  } else {
    fmt::print("\nbest validation loss {:.4f} after {}; try\n  {} sample {}\n",
               trainer.best_val_loss(), clock_text(speed.seconds()), c.common->program,
               run.folder());
  }
  return kDone;
}

int train_with(const TrainCommand& c, const Run& run, const Split& text, bool resumed) {
  return run.config().dtype == Dtype::f64 ? train_loop<double>(c, run, text, resumed)
                                          : train_loop<float>(c, run, text, resumed);
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
  TrainOptions train = run.config().train;
  if (c.given("--steps")) train.steps = c.train.steps;
  if (c.given("--eval-every")) train.eval_every = c.train.eval_every;
  if (c.given("--eval-batches")) train.eval_batches = c.train.eval_batches;
  train.validate();
  const std::string text = text_of(c.given("--data") ? c.data : run.config().data);
  require<DataError>(text_hash(text) == run.config().data_hash,
                     "{}: the text '{}' is not the one the run was started with (hash {}, was {})",
                     c.resume, c.given("--data") ? c.data : run.config().data, text_hash(text),
                     run.config().data_hash);
  run.set_train(train);
  return train_with(c, run, split(run.tokenizer().encode(text), run.config().model.context), true);
}

int start(TrainCommand& c) {
  if (!c.given("--min-lr")) c.train.min_lr = c.train.lr / 10;
  c.train.validate();
  ModelConfig checked = c.model;
  checked.vocab = 1;  // the rest is wrong or right before any text is read
  checked.validate();
  const std::string text = text_of(c.data);
  const CharTokenizer tokenizer = CharTokenizer::from_text(text);
  const Split parts = split(tokenizer.encode(text), c.model.context);
  if (text.find('\r') != std::string::npos)
    fmt::print(stderr, "note: the text has carriage returns (\\r); they are kept as characters\n");
  RunConfig config{.model = c.model,
                   .train = c.train,
                   .dtype = c.dtype,
                   .seed = c.common->seed,
                   .data = c.data,
                   .data_hash = text_hash(text)};
  config.model.vocab = tokenizer.vocab();
  const Run run = Run::create(c.out.empty() ? free_folder() : c.out, config, tokenizer);
  return train_with(c, run, parts, false);
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
