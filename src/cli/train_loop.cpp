#include "cli/train_loop.hpp"
#include "cli/message.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numbers>
#include <sstream>
#include <system_error>

#include "cli/json.hpp"
#include "cli/progress.hpp"
#include "cli/prompt.hpp"
#include "cli/speed.hpp"
#include "cli/stop_signals.hpp"
#include "cli/study_log.hpp"
#include "cli/text_stream.hpp"
#include "headwise/core/gemm.hpp"
#include "headwise/core/parallel.hpp"
#include "headwise/core/printable.hpp"
#include "headwise/models/presets.hpp"
#include "headwise/models/sample.hpp"
#include "headwise/train/memory_use.hpp"
#include "kernels/isa.hpp"

namespace headwise::cli {
namespace {

using nlohmann::json;

/// Mean speed of training since the start.
class Speed {
 public:
  void step(Index tokens) { tokens_ += tokens; }
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
    return static_cast<double>(tokens_) / std::max(training, 1e-9);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double seconds_between(Clock::time_point a, Clock::time_point b) {
    return std::chrono::duration<double>(b - a).count();
  }
  Clock::time_point start_ = Clock::now();
  Clock::duration paused_{};
  Index tokens_ = 0;
};

/// "; 84 GFLOP/s, 0.55 of this machine's 152 in plain products" at that speed of training.
template <Real T>
std::string share_text(const Run& run, Decoder<T>& model, double tokens_per_second) {
  if (run.config().dtype != Dtype::f32) return "";  // the machine's rate is measured in float
  const ModelConfig& c = run.config().model;
  const double rate =
      tokens_per_second / 1e9 * training_flops(c, parameter_count(model) - looked_up(c), 1, true);
  const Peak peak = gemm_peak(0.1);
  return fmt::format("; {:.0f} GFLOP/s, {:.2f} of this machine's {:.0f} in plain products{}", rate,
                     rate / peak.gflops, peak.gflops, peak.note);
}

/// What the user should know before the first step.
template <Real T>
void describe(const Run& run, const Material& material, Decoder<T>& model) {
  const ModelConfig& m = run.config().model;
  Index decayed = 0, plain = 0, decayed_tensors = 0, plain_tensors = 0, frozen = 0;
  for_each_param(model, [&](const std::string&, const Param<T>& p) {
    if (!p.trainable) {
      frozen += p.value.size();
      return;
    }
    (is_decayed(p) ? decayed : plain) += p.value.size();
    (is_decayed(p) ? decayed_tensors : plain_tensors) += 1;
  });
  fmt::print("{}\n", material.about);
  for (const std::string& note : material.notes) fmt::print("            {}\n", note);
  const TrainOptions& o = run.config().train;
  if (o.warmup >= o.steps)
    fmt::print("            --warmup {} is not below --steps {}: the rate never reaches --lr\n",
               o.warmup, o.steps);
  fmt::print("model       {} layers, {} heads, width {}, context {}: {} parameters\n", m.layers,
             m.heads, m.width, m.context, decayed + plain + frozen);
  fmt::print("optimiser   AdamW: {} matrices ({} numbers) decay by {}, {} vectors ({}) do not\n",
             decayed_tensors, decayed, run.config().train.weight_decay, plain_tensors, plain);
  if (frozen > 0) fmt::print("            {} numbers are frozen\n", frozen);
  const MemoryUse use = training_memory(m, o.batch, sizeof(T));
  fmt::print("memory      about {}: weights {}, optimizer {}, activations {}\n",
             bytes_text(use.total()), bytes_text(use.weights), bytes_text(use.optimizer),
             bytes_text(use.activations));
  fmt::print("machine     {} thread(s), {}, {}\n", threads(), kernels::isa_name(),
             blas_description());
  fmt::print("run         {}\n\n", run.folder());
}

/// The evaluation as `--json` and log.jsonl have it.
std::string json_of(const EvalRecord& e, bool held_out, const Speed& speed) {
  json line = {{"event", "eval"},
               {"step", e.step},
               {"train_loss", e.train_loss},
               {"val_loss", e.val_loss},
               {"held_out", held_out},
               {"lr", e.lr},
               {"tokens_per_second", speed.tokens_per_second()}};
  if (e.val_accuracy) {
    line["val_accuracy"] = *e.val_accuracy;
    line["val_answers"] = e.val_answers;
  }
  return line.dump();
}

void print_evaluation(const CallOptions& c, const EvalRecord& e, const Source& source,
                      const std::string& line, const Speed& speed) {
  std::string right;
  if (e.val_each_once)
    right = fmt::format("right {} of {}  ", e.val_right, e.val_answers);
  else if (e.val_accuracy)
    right = fmt::format("right {:.2f} %  ", 100 * *e.val_accuracy);
  if (c.json_lines)
    fmt::print("{}\n", line);
  else
    fmt::print("step {:6}  train {:.4f}  {} {:.4f}{}  {}lr {:.2e}  {:.0f} tokens/s  {}\n", e.step,
               e.train_loss, source.held_out() ? "val" : source.evaluated_on(), e.val_loss,
               e.best ? "*" : " ", right, e.lr, speed.tokens_per_second(),
               clock_text(speed.seconds()));
  flush_output();
}

template <Real T>
void print_best(const std::string& program, const Run& run, const Material& material,
                const Trainer<T>& trainer, Decoder<T>& model, const Speed& speed) {
  const double seconds = speed.seconds(),
               rate = speed.tokens_per_second();  // before more is measured
  std::string fast;
  if (rate > 0) fast = fmt::format("; {:.0f} tokens/s{}", rate, share_text(run, model, rate));
  std::string bits;  // whatever a token is, a byte is a byte
  if (run.config().task.empty())
    bits = fmt::format(" ({:.3f} bits a byte)",
                       trainer.best_val_loss() / std::numbers::ln2 / material.bytes_per_token);
  const Source& source = *material.source;
  fmt::print("\n{} {:.4f}{} after {}{}\ntry\n  {} sample {}\n",
             source.held_out() ? "best validation loss"
                               : fmt::format("best loss on the {}", source.evaluated_on()),
             trainer.best_val_loss(), bits, clock_text(seconds), fast, program, run.folder());
}

template <Real T>
void print_end(const CallOptions& c, const std::string& program, const Run& run,
               const Material& material, const Trainer<T>& trainer, Decoder<T>& model,
               const Speed& speed) {
  if (c.json_lines)
    fmt::print("{}\n", json{{"event", "done"},
                            {"steps", trainer.steps_done()},
                            {"val_loss", number(trainer.val_loss())},
                            {"best_val_loss", number(trainer.best_val_loss())},
                            {"held_out", material.source->held_out()},
                            {"parameters", parameter_count(model)},
                            {"tokens_per_second", speed.tokens_per_second()},
                            {"seconds", speed.seconds()},
                            {"run", run.folder()}}
                           .dump());
  else if (!trainer.done() || trainer.evaluation_due())
    fmt::print("stopped at step {} of {}, saved; go on with\n  {} train --resume {}\n",
               trainer.steps_done(), run.config().train.steps, program, run.folder());
  else
    print_best(program, run, material, trainer, model, speed);
}

/// What the model writes by now. Draws from a stream of its own, so that nothing else changes.
template <Real T>
void print_sample(const CallOptions& c, const Run& run, const Material& material,
                  const Decoder<T>& model, Index step) {
  const auto* task = dynamic_cast<const TaskSource*>(material.source.get());
  Rng rng = stream(run.config().seed, Purpose::training_samples, step);
  const Prompt prompt = prompt_of(run, task == nullptr ? nullptr : &task->task(), "", rng);
  const std::string text =
      prompt.text +
      run.tokenizer().decode(sample(
          model, prompt.tokens, std::min<Index>(model.config.context, 128), {}, rng, prompt.go_on));
  if (c.json_lines)
    fmt::print("{}\n", json{{"event", "sample"}, {"step", step}, {"text", text}}.dump(
                           -1, ' ', false, json::error_handler_t::replace));
  else
    fmt::print("--- at step {}{}\n{}\n---\n", step,
               prompt.stand_in ? fmt::format(", after \"{}\"", printable(*prompt.stand_in)) : "",
               shown(text));
  flush_output();
}

/// What is left of a run whose numbers did not stay finite, and how to go on from it. A resumed run
/// takes the same steps again.
std::string way_back(const std::string& program, const Run& run, Index saved) {
  const std::string folder = printable(run.folder());
  if (saved == 0)
    return fmt::format("nothing was saved in {}; start again with a lower --lr", folder);
  return fmt::format(
      "{} keeps the state of step {} and its best weights; a resumed run comes to the same step, "
      "so "
      "go back to the best weights, with a lower rate: {} train --init-from {} --lr {:.3g}",
      folder, saved, program, folder, run.config().train.lr / 10);
}

}  // namespace

void CallOptions::validate() const {
  require<UsageError>(stop_after >= 0, "--stop-after: must be >= 0, got {}", stop_after);
}

Index studied_every(const Run& run) {
  if (!run.directory().has(Run::kLog)) return 0;
  std::istringstream log(run.directory().read(Run::kLog));
  Index every = 0, last = -1;
  for (std::string text; std::getline(log, text);) {
    const json line = json::parse(text, nullptr, false);
    if (!line.is_object() || line.value("event", json()) != "study") continue;
    const Index step = line.value("step", Index{0});
    if (last >= 0 && step > last) every = every == 0 ? step - last : std::min(every, step - last);
    last = step;
  }
  return every;
}

template <Real T>
int train_loop(const CallOptions& c, const std::string& program, const Run& run,
               const Material& material, Trainer<T>& trainer, Decoder<T>& model) {
  if (!c.json_lines) describe(run, material, model);
  const StopSignals signals;
  const LoopOptions& loop = run.config().loop;
  const Index first = trainer.steps_done();
  Index saved = first;  // steps of the state in the folder; 0: there is none
  Speed speed;
  Progress progress(run.config().train.steps, first);
  const auto save = [&](bool best) {
    speed.pause([&] { return save_run(run, trainer, model, best), 0; });
    saved = trainer.steps_done();
  };
  const auto stop = [&] {
    return StopSignals::requested() ||
           (c.stop_after > 0 && trainer.steps_done() - first >= c.stop_after);
  };
  std::optional<StudyLog<T>> study;
  if (loop.study_every > 0) study.emplace(run, material);
  const auto look = [&](std::optional<double> loss) {
    const std::string line =
        speed.pause([&] { return study->line(model, trainer.steps_done(), loss); });
    run.log(line);
    if (c.json_lines) fmt::print("{}\n", line);
  };
  const auto due = [](Index step, Index every) { return every > 0 && step % every == 0; };
  const auto train = [&] {
    if (study && first == 0) look(std::nullopt);
    // The state is saved before an evaluation too: that may take long, and whoever stops it loses
    // nothing.
    while (true) {
      if (trainer.evaluation_due()) {
        const auto e =
            speed.pause([&] { return trainer.evaluate([] { return !StopSignals::requested(); }); });
        if (!e) return;
        const std::string line = json_of(*e, material.source->held_out(), speed);
        run.log(line);
        save(e->best);
        progress.clear();
        print_evaluation(c, *e, *material.source, line, speed);
      }
      if (trainer.done() || stop()) return;
      const StepRecord record = trainer.step();
      speed.step(record.tokens);
      progress.show(record.step, record.loss, speed.tokens_per_second());
      if (due(record.step, loop.study_every)) look(record.loss);
      if (due(record.step, loop.save_every) || trainer.evaluation_due() || stop()) save(false);
      if (due(record.step, loop.sample_every)) {
        progress.clear();
        speed.pause([&] { return print_sample(c, run, material, model, record.step), 0; });
      }
    }
  };
  try {
    train();
  } catch (const std::system_error&) {  // of standard output
    if (trainer.steps_done() > saved) save(false);
    throw;
  } catch (const headwise::NotFinite& e) {
    progress.clear();
    throw Error(fmt::format("{}; {}", e.what(), way_back(program, run, saved)));
  }
  progress.clear();
  print_end(c, program, run, material, trainer, model, speed);
  return StopSignals::exit_code();
}

#define HEADWISE_INSTANTIATE(T)                                                                \
  template int train_loop(const CallOptions&, const std::string&, const Run&, const Material&, \
                          Trainer<T>&, Decoder<T>&);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise::cli
