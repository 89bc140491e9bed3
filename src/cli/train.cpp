// headwise train: from a text or a task to a run folder.
#include <fmt/format.h>

#include <filesystem>

#include "cli/load.hpp"
#include "cli/material.hpp"
#include "cli/message.hpp"
#include "cli/options.hpp"
#include "cli/output_guard.hpp"
#include "cli/train_loop.hpp"
#include "headwise/core/gemm.hpp"
#include "headwise/models/presets.hpp"
#include "headwise/train/memory_use.hpp"
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
  CallOptions call;

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

/// A new folder for a run that was given none. Two programs never get the same.
std::string free_folder() {
  std::filesystem::create_directories("runs");
  for (Index i = 1;; ++i) {
    std::string folder = fmt::format("runs/{}", i);
    if (std::filesystem::create_directory(folder)) return folder;
  }
}

void warn_unlocked(const Run& run) {
  if (const std::string why = run.unlocked(); !why.empty())
    print_message(
        "note: {}: its file system has no locks ({}); nothing but you keeps a second "
        "training out of it\n",
        printable(run.folder()), why);
}

/// Tells of each option that is not what it was.
template <class Options>
void announce(const Options& before, const Options& after) {
  const auto was = option_texts(before), is = option_texts(after);
  for (std::size_t i = 0; i < is.size(); ++i)
    if (is[i] != was[i])
      print_message("note: --{}: {}, was {}\n", is[i].first, printable(is[i].second),
                    printable(was[i].second));
}

/// Tells what changes in a run that goes on after so many steps.
void announce_changes(const RunConfig& before, const RunConfig& after, Index done) {
  announce(before.train, after.train);
  announce(before.loop, after.loop);
  const double was = learning_rate(before.train, done), is = learning_rate(after.train, done);
  if (done < after.train.steps && is != was)
    print_message(
        "note: learning rate at step {}: {:.3g}, was {:.3g}; the schedule is the one of {} "
        "steps from the start\n",
        done + 1, is, was, after.train.steps);
}

/// A run that goes on, or the run whose weights a new one takes.
struct Beginning {
  std::optional<Run> resumed, weights;
};

/// Continues a run: its state, its log, and what this call changes in its configuration.
template <Real T>
Run go_on(Run run, const RunConfig& config, Trainer<T>& trainer) {
  trainer.load(run.state());
  require<UsageError>(config.train.steps >= trainer.steps_done(),
                      "--steps: {} is below the {} steps that the run has done", config.train.steps,
                      trainer.steps_done());
  announce_changes(run.config(), config, trainer.steps_done());
  run.rewind_log(trainer.steps_done(), trainer.evaluated());
  run.change(config.train, config.loop, config.blas);
  return run;
}

/// Everything that can be wrong is found before there is a folder.
template <Real T>
int train_with(const TrainCommand& c, const RunConfig& config, const Material& material,
               const Beginning& from) {
  if (from.resumed) require_numbers(from.resumed->state(), config.model);
  if (!c.call.force) require_memory(training_memory(config.model, config.train.batch, sizeof(T)));
  Rng init(config.seed);
  Decoder<T> model(config.model, init);
  Trainer<T> trainer(model, config.train, *material.source, config.seed);
  if (from.weights) warn_not_finite(*from.weights, load_weights(model, from.weights->weights()));
  const Run run = from.resumed ? go_on(*from.resumed, config, trainer)
                               : Run::create(c.out.empty() ? free_folder() : c.out, config,
                                             material.tokenizer, c.call.force);
  warn_unlocked(run);
  return train_loop(c.call, c.common->program, run, material, trainer, model);
}

int train_in_precision(const TrainCommand& c, const RunConfig& config, const Material& material,
                       const Beginning& from) {
  return config.dtype == Dtype::f64 ? train_with<double>(c, config, material, from)
                                    : train_with<float>(c, config, material, from);
}

/// Goes on with a run: what it was started with stays, but for how long and how often.
int resume(const TrainCommand& c) {
  static constexpr const char* kMayChange[] = {"--resume",       "--data",         "--steps",
                                               "--eval-every",   "--eval-batches", "--save-every",
                                               "--sample-every", "--study-every",  "--stop-after",
                                               "--json",         "--threads",      "--force"};
  const Run run = Run::resume(c.resume);
  for (const std::string& option : c.args->all_given())
    require<UsageError>(
        std::find(std::begin(kMayChange), std::end(kMayChange), option) != std::end(kMayChange),
        "{}: belongs to the run {} and cannot change on --resume", option, c.resume);
  RunConfig config = run.config();
  if (!config.blas.empty() && config.blas != blas_description())
    print_message(
        "note: the run was started with {}, this is {}: it goes on, but not with the same "
        "bits as there\n",
        config.blas, blas_description());
  if (config.format == 0) config.loop.study_every = studied_every(run);
  c.args->apply_given(config.train);
  c.args->apply_given(config.loop);
  config.train.validate();
  config.loop.validate();
  const Material material = material_of_run(run, c.data);
  if (!config.blas.ends_with(blas_description()))
    config.blas += (config.blas.empty() ? "" : ", then ") + blas_description();
  return train_in_precision(c, config, material, {.resumed = run, .weights = std::nullopt});
}

/// The weights of --init-from mean what they do in their own model: only dropout may be another.
void check_init_from(const std::string& from, const ModelConfig& its, const ModelConfig& given) {
  const auto was = option_texts(its), is = option_texts(given);
  for (std::size_t i = 0; i < is.size(); ++i) {
    const auto& [name, value] = is[i];
    if (value == was[i].second) continue;
    require<UsageError>(name == "dropout", "--{}: {}, but the weights of --init-from {} are for {}",
                        name, value, printable(from), was[i].second);
    print_message("note: --dropout: {}; {} has {}\n", value, printable(from), was[i].second);
  }
}

/// What is in the way of a new run is found before any text is read.
void guard_folder(const TrainCommand& c, const std::optional<Run>& known) {
  OutputGuard guard(c.call.force);
  guard.reads(c.data);
  guard.reads(c.task);
  if (known) guard.reads(*known);
  guard.writes_run("--out", c.out);
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
  if (known) check_init_from(c.init_from, known->config().model, config.model);
  if (!c.given("--min-lr")) config.train.min_lr = config.train.lr / 10;
  config.train.validate();
  if (!c.out.empty()) guard_folder(c, known);
  config.model.vocab = 1;  // the rest is wrong or right before any text is read
  config.model.validate();
  const Material material = material_of(c, known, config);
  config.model.vocab = material.tokenizer.vocab();
  config.loop = c.loop;
  config.data = lasting_path(c.data);
  config.task = is_task_file(c.task) ? lasting_path(c.task) : c.task;
  config.length = c.length;
  config.data_hash = material.hash;
  return train_in_precision(c, config, material, {.resumed = std::nullopt, .weights = known});
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
  args.bind(c->call);
  args.describe_default("--min-lr", "a tenth of --lr");
  return [c] {
    c->loop.validate();
    c->call.validate();
    return c->resume.empty() ? start(*c) : resume(*c);
  };
}

}  // namespace headwise::cli
