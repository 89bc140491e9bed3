// headwise train: from a text or a task to a run folder.
#include <fmt/format.h>

#include <filesystem>

#include "cli/load.hpp"
#include "cli/material.hpp"
#include "cli/options.hpp"
#include "cli/train_loop.hpp"
#include "headwise/core/gemm.hpp"
#include "headwise/models/presets.hpp"
#include "headwise/train/run.hpp"

namespace headwise::cli {
namespace {

struct TrainCommand {
  Arguments* args = nullptr;
  CommonOptions* common = nullptr;
  std::string data, task, preset, out, resume, init_from;
  Index length = 0;
  TokenizerKind tokenizer = TokenizerKind::character;
  Index min_count = 2;
  Dtype dtype = Dtype::f32;
  ModelConfig model;
  TrainOptions train;
  LoopOptions loop;

  void visit(auto&& v) {
    v("data", data, "text to train on, '-': standard input; default: the built-in stories");
    v("task", task, "task to train on instead: copy, induction, or FILE.tsv (prompt, tab, answer)");
    v("length", length, "length of a built-in task's inputs; 0: the task's own");
    v("tokenizer", tokenizer, "what a token is: char, byte or word");
    v("min-count", min_count, "words: how often the text must have one for it to be a token");
    v("preset", preset, "model of a known size; options that are given come before it");
    v("init-from", init_from, "run whose weights and tokens to start from");
    v("out", out, "folder for the run; default: runs/1, runs/2, ...");
    v("resume", resume, "run folder to go on with");
    v("dtype", dtype, "precision: f32 or f64");
  }

  [[nodiscard]] bool given(const char* option) const { return args->given(option); }
};

std::string free_folder() {
  for (Index i = 1;; ++i) {
    std::string folder = fmt::format("runs/{}", i);
    if (!std::filesystem::exists(folder)) return folder;
  }
}

/// What a run begins with, besides its configuration.
struct Beginning {
  std::string resumed;         ///< state to go on from, or ""
  std::optional<Run> weights;  ///< run whose weights to take
};

/// Everything that can be wrong is found before there is a folder: `run` is called last.
template <Real T>
int train_with(const TrainCommand& c, const RunConfig& config, const Material& material,
               const std::function<Run()>& run, const Beginning& from) {
  Rng init(config.seed);
  Decoder<T> model(config.model, init);
  Trainer<T> trainer(model, config.train, *material.source, config.seed);
  if (from.weights) warn_not_finite(*from.weights, load_weights(model, from.weights->model()));
  if (!from.resumed.empty()) {
    trainer.load(from.resumed);
    require<UsageError>(config.train.steps >= trainer.steps_done(),
                        "--steps: {} is below the {} steps that the run has done",
                        config.train.steps, trainer.steps_done());
  }
  const Run folder = run();
  if (!from.resumed.empty()) {
    folder.forget_after("eval", trainer.evaluated());
    folder.forget_after("study", trainer.steps_done());
  }
  train_loop(c.loop, c.common->program, folder, material, trainer, model);
  return kDone;
}

int train_in_precision(const TrainCommand& c, const RunConfig& config, const Material& material,
                       const std::function<Run()>& run, const Beginning& from) {
  return config.dtype == Dtype::f64 ? train_with<double>(c, config, material, run, from)
                                    : train_with<float>(c, config, material, run, from);
}

/// Goes on with a run: what it was started with stays, but for how long and how often.
int resume(const TrainCommand& c) {
  static constexpr const char* kMayChange[] = {"--resume",       "--data",         "--steps",
                                               "--eval-every",   "--eval-batches", "--save-every",
                                               "--sample-every", "--study-every",  "--stop-after",
                                               "--json",         "--threads"};
  Run run = Run::open(c.resume);
  for (const std::string& option : c.args->all_given())
    require<UsageError>(
        std::find(std::begin(kMayChange), std::end(kMayChange), option) != std::end(kMayChange),
        "{}: belongs to the run {} and cannot change on --resume", option, c.resume);
  RunConfig config = run.config();
  if (!config.blas.empty() && config.blas != blas_description())
    fmt::print(stderr,
               "note: the run was started with {}, this is {}: it goes on, but not with the same "
               "bits as there\n",
               config.blas, blas_description());
  c.args->apply_given(config.train);
  config.train.validate();
  const Material material = material_of_run(run, c.data);
  if (!config.blas.ends_with(blas_description()))
    config.blas += (config.blas.empty() ? "" : ", then ") + blas_description();
  const auto reopened = [&] {
    run.change(config.train, config.blas);
    return run;
  };
  return train_in_precision(c, config, material, reopened,
                            {.resumed = run.last(), .weights = std::nullopt});
}

/// The text or the task to learn from. A task sets the context, unless one was given.
Material material_of(const TrainCommand& c, const std::optional<Run>& known, RunConfig& config) {
  std::optional<Tokenizer> tokenizer;
  if (known) tokenizer = known->tokenizer();
  if (c.task.empty()) {
    require<UsageError>(c.length == 0, "--length: {} is for --task, and there is none", c.length);
    return text_material(c.data, {c.tokenizer, c.min_count, tokenizer}, config.model.context);
  }
  require<UsageError>(c.data.empty(), "--data: {} and --task {} exclude each other", c.data,
                      c.task);
  require<UsageError>(!c.given("--tokenizer"),
                      "--tokenizer: {}, but a task's tokens are its characters",
                      name_of(c.tokenizer));
  std::unique_ptr<const Task> task = make_task(c.task, c.length);
  const Index needed = task->longest() - 1;
  if (!c.given("--context") && !known) config.model.context = needed;
  require<UsageError>(config.model.context >= needed,
                      "--context: {} tokens are too few for the task {}, which needs {}",
                      config.model.context, c.task, needed);
  return task_material(std::move(task), tokenizer);
}

int start(const TrainCommand& c) {
  require<UsageError>(c.tokenizer == TokenizerKind::word || !c.given("--min-count"),
                      "--min-count: {} is for --tokenizer word, not {}", c.min_count,
                      name_of(c.tokenizer));
  check_min_count(c.min_count);
  require<UsageError>(c.preset.empty() || c.init_from.empty(),
                      "--preset: {} and --init-from {} exclude each other", c.preset, c.init_from);
  RunConfig config;
  config.dtype = c.dtype;
  config.seed = c.common->seed;
  config.blas = blas_description();
  std::optional<Run> known;
  if (!c.preset.empty()) {
    const Preset& p = preset("--preset", c.preset);
    config.model = p.model;
    config.train.batch = p.batch;
  }
  if (!c.init_from.empty()) {
    require<UsageError>(!c.given("--tokenizer"),
                        "--tokenizer: {}, but it is that of --init-from {}", name_of(c.tokenizer),
                        c.init_from);
    known = Run::open(c.init_from);
    config.model = known->config().model;
    if (!c.given("--dtype")) config.dtype = known->config().dtype;
  }
  c.args->apply_given(config.model);
  c.args->apply_given(config.train);
  if (!c.given("--min-lr")) config.train.min_lr = config.train.lr / 10;
  config.train.validate();
  config.model.vocab = 1;  // the rest is wrong or right before any text is read
  config.model.validate();
  const Material material = material_of(c, known, config);
  config.model.vocab = material.tokenizer.vocab();
  config.data = lasting_path(c.data);
  config.task = is_task_file(c.task) ? lasting_path(c.task) : c.task;
  config.length = c.length;
  config.data_hash = material.hash;
  const auto created = [&] {
    return Run::create(c.out.empty() ? free_folder() : c.out, config, material.tokenizer);
  };
  return train_in_precision(c, config, material, created, {.resumed = "", .weights = known});
}

}  // namespace

Action train_command(Arguments& args, CommonOptions& common) {
  const auto c = std::make_shared<TrainCommand>();
  c->args = &args;
  c->common = &common;
  args.bind(*c);
  args.bind(c->model);
  args.bind(c->train);
  args.bind(c->loop);
  args.describe_default("--min-lr", "a tenth of --lr");
  return [c] {
    c->loop.validate();
    return c->resume.empty() ? start(*c) : resume(*c);
  };
}

}  // namespace headwise::cli
