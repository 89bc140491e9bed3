// headwise study RUN: what each head of a trained model does.
#include "headwise/study/study.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/load.hpp"
#include "cli/material.hpp"
#include "cli/message.hpp"
#include "cli/options.hpp"
#include "cli/output_guard.hpp"
#include "cli/progress.hpp"
#include "cli/prompt.hpp"
#include "cli/study_json.hpp"
#include "cli/study_table.hpp"
#include "headwise/core/file.hpp"

namespace headwise::cli {
namespace {

using nlohmann::json;

struct StudyCommand {
  std::string run, data, text, clean, corrupt, answer, wrong, json, out, patterns, layers, heads,
      range, show;
  Index sequences = 100;
  bool force = false;

  void visit(auto&& v) {
    v("text", text, "look at this text; default: held-out data, and repeated random tokens");
    v("data", data, "text to look at instead of the run's own validation part");
    v("sequences", sequences, "sequences of the data that heads are scored on");
    v("out", out, "HTML file: everything as one page, for a browser; at most 64 MB");
    v("json", json, "file for everything that was found, as one JSON document");
    v("patterns", patterns, "file for the raw patterns, as safetensors");
    v("layers", layers, "layers on the page and in --patterns, such as 0,2-3; default: all");
    v("heads", heads, "heads of each of them; default: all");
    v("range", range, "tokens A:B of each sequence there; default: all");
    v("show", show, "print the pattern of a head, such as 1.0, and nothing else");
    v("clean", clean, "activation patching: a prompt whose head results go into --corrupt");
    v("corrupt", corrupt, "a prompt of as many tokens as --clean");
    v("answer", answer, "token after --clean; default: the likeliest");
    v("wrong", wrong, "token after --corrupt; default: the likeliest");
    v("force", force, kForceHelp);
  }
};

/// Repeated random tokens: heads show what they do on fewer of them than of data.
constexpr Index kRepeated = 25;

/// Sentences of new stories that are asked about: enough for figures of two digits, but for models
/// so large that they would take more than seconds.
Index story_sentences(const ModelConfig& m) {
  constexpr double kMost = 1000, kLeast = 200, kWork = 2e11, kTokens = 100;  // a sentence, about
  const auto width = static_cast<double>(m.width);
  const double a_sentence = 24 * static_cast<double>(m.layers) * width * width * kTokens;
  return static_cast<Index>(std::clamp(kWork / a_sentence, kLeast, kMost));
}

/// What heads are studied on, and what the data is.
struct Studied {
  study::Sets sets;
  std::string data;              ///< "held-out data", "training text", the path of --data
  std::optional<bool> held_out;  ///< absent: not known
};

Studied data_of(const StudyCommand& c, const Run& run, std::uint64_t seed) {
  const Index context = run.config().model.context;
  if (!c.text.empty()) {
    std::vector<Id> ids = about("--text", [&] { return run.tokenizer().encode(c.text); });
    require<UsageError>(std::ssize(ids) >= 2 && std::ssize(ids) <= context,
                        "--text: {} tokens, need from 2 to the context of {}", ids.size(), context);
    return {{.data = study::one_sequence(std::move(ids))}, "the given text", std::nullopt};
  }
  if (!c.data.empty() && run.config().task.empty()) {
    GivenText given = given_text(run, c.data);
    const TextSource source(Split{{}, std::move(given.tokens), false}, context);
    return about(c.data, [&] {
      return Studied{
          {.data = study::data_sequences(source, c.sequences, seed)}, given.what, given.held_out};
    });
  }
  const Material material = material_of_run(run, c.data);
  const Source& source = *material.source;
  return {{.data = study::data_sequences(source, c.sequences, seed)},
          source.held_out() ? "held-out data" : std::string(source.evaluated_on()),
          source.held_out()};
}

Studied studied(const StudyCommand& c, const Run& run, std::uint64_t seed) {
  const RunConfig& config = run.config();
  const Index context = config.model.context;
  Studied all = data_of(c, run, seed);
  study::Sets& sets = all.sets;
  if (!c.text.empty()) return all;
  sets.repeated = study::repeated_sequences(sets.data, std::min(kRepeated, c.sequences), context,
                                            token_of(run.tokenizer(), "\n"), seed);
  if (config.task.empty() && config.data.empty() && c.data.empty())
    sets.stories =
        study::story_questions(run.tokenizer(), context, story_sentences(config.model), seed + 1);
  return all;
}

/// The token of an option's text.
std::optional<Id> token_given(const char* option, const std::string& text,
                              const Tokenizer& tokenizer) {
  if (text.empty()) return std::nullopt;
  const std::vector<Id> ids = about(option, [&] { return tokenizer.encode(text); });
  require<UsageError>(ids.size() == 1, "{}: '{}' is {} tokens, not one", option, text, ids.size());
  return ids[0];
}

template <Real T>
std::optional<PatchedPrompts> patched(const StudyCommand& c, const Run& run,
                                      const Decoder<T>& model) {
  if (c.clean.empty()) return std::nullopt;
  const Tokenizer& tokenizer = run.tokenizer();
  PatchedPrompts prompts{about("--clean", [&] { return tokenizer.encode(c.clean); }),
                         about("--corrupt", [&] { return tokenizer.encode(c.corrupt); }),
                         {}};
  prompts.found = study::patch_heads(model, prompts.clean, prompts.corrupt,
                                     {.answer = token_given("--answer", c.answer, tokenizer),
                                      .wrong = token_given("--wrong", c.wrong, tokenizer)});
  return prompts;
}

json settings_of(const StudyCommand& c, const Studied& studied, std::uint64_t seed) {
  const study::RoleRule rule;
  const study::Sets& sets = studied.sets;
  return {{"data", studied.data},
          {"held_out", studied.held_out ? json(*studied.held_out) : json()},
          {"sequences", sets.data.count()},
          {"repeated_sequences", sets.repeated ? sets.repeated->count() : 0},
          {"questions", sets.stories ? std::ssize(sets.stories->questions) : 0},
          {"length", sets.data.time()},
          {"layers", c.layers},
          {"heads", c.heads},
          {"range", c.range},
          {"text", c.text},
          {"seed", seed},
          {"margin", rule.margin},
          {"alpha", rule.alpha}};
}

/// "1 layer", "2 layers".
std::string counted(Index n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

void print_beginning(const StudyCommand& c, const Run& run, const Studied& studied) {
  const ModelConfig& m = run.config().model;
  const study::Sets& sets = studied.sets;
  const std::string tokens = counted(sets.data.time(), "token");
  const Index count = sets.data.count();
  std::string seen;
  if (!c.text.empty())
    seen = fmt::format("the given text of {}", tokens);
  else if (studied.held_out == true)
    seen =
        fmt::format("{} of up to {}, no two the same", counted(count, "held-out sequence"), tokens);
  else
    seen = fmt::format("{} of {} of up to {}, no two the same", counted(count, "sequence"),
                       studied.held_out == false ? "the " + studied.data : studied.data, tokens);
  if (sets.repeated) seen += fmt::format(", {} of repeated random tokens", sets.repeated->count());
  if (sets.stories)
    seen += fmt::format(", {} about new stories",
                        counted(std::ssize(sets.stories->questions), "question"));
  fmt::print("{}: {} of {}, on {}\n\n", run.folder(), counted(m.layers, "layer"),
             counted(m.heads, "head"), seen);
}

void check(const StudyCommand& c) {
  require<UsageError>(c.sequences >= 1, "--sequences: must be >= 1, got {}", c.sequences);
  require<UsageError>(c.text.empty() || c.data.empty(), "--text: cannot be given with --data");
  require<UsageError>(c.clean.empty() == c.corrupt.empty(),
                      "--clean and --corrupt: need each other");
  require<UsageError>(!c.clean.empty() || (c.answer.empty() && c.wrong.empty()),
                      "--answer and --wrong: need --clean and --corrupt");
  require<UsageError>(
      c.show.empty() || (c.out.empty() && c.json.empty() && c.patterns.empty()),
      "--show: prints one pattern, and cannot be given with --out, --json or --patterns");
}

void guard_files(const StudyCommand& c, const Run& run) {
  OutputGuard guard(c.force);
  guard.reads(run);
  guard.reads(c.data);
  guard.writes("--out", c.out, Output::page);
  guard.writes("--json", c.json, Output::study);
  guard.writes("--patterns", c.patterns, Output::patterns);
}

/// What can go wrong with files does so before the work, not after it.
template <Real T>
void announce_files(const StudyCommand& c, const json& document, const study::Sets& sets,
                    const Selection& selection) {
  const auto megabytes = [](std::uintmax_t bytes) { return static_cast<double>(bytes) / 1e6; };
  if (!c.out.empty()) {
    const std::uintmax_t size = study_page_size(document, selection.ids());
    fmt::print("the page will have {:.1f} MB or little more\n", megabytes(size));
    check_page_size(size);
  }
  if (!c.patterns.empty())
    fmt::print("the patterns will have {:.1f} MB\n", megabytes(patterns_size<T>(sets, selection)));
  for (const std::string& path : {c.out, c.patterns, c.json}) {
    if (path.empty()) continue;
    const AtomicFile writable(path);
  }
}

template <Real T>
int study_model(const StudyCommand& c, const Run& run, const Decoder<T>& model,
                const Studied& studied, std::uint64_t seed) {
  const ModelConfig& config = model.config;
  const study::Sets& sets = studied.sets;
  const Selection selection{.layers = parse_list("--layers", c.layers, config.layers),
                            .heads = parse_list("--heads", c.heads, config.heads),
                            .range = Range::parse("--range", c.range)};
  const std::vector<ShownText> texts =
      shown_texts(sets, studied.data, !c.text.empty(), selection.range);
  PatternsOfTexts<T> patterns(model, texts);
  if (!c.show.empty()) {
    print_pattern(patterns, study::head_of("--show", c.show, config), texts[0], run.tokenizer());
    return kDone;
  }
  json document = json_of_run(run);
  Decoder<T> copy = model;  // shares the weights
  document["model"]["parameters"] = parameter_count(copy);
  document.update(json_of(model, run.tokenizer(), texts));
  announce_files<T>(c, document, sets, selection);
  const std::optional<PatchedPrompts> prompts = patched(c, run, model);
  print_beginning(c, run, studied);
  flush_output();
  Progress progress(6, 0);
  Index stage = 0;
  const Findings found =
      find(model, sets, seed, [&](std::string_view what) { progress.show(stage++, what); });
  progress.clear();
  print_findings(found, config);
  if (prompts) print_patching(*prompts, run.tokenizer(), config);

  document["settings"] = settings_of(c, studied, seed);
  document.update(json_of(found, config));
  document["timeline"] = timeline_of(run.folder() + "/log.jsonl");
  document["patching"] = prompts ? json_of(*prompts, run.tokenizer(), config) : json();
  if (!c.json.empty())
    replace_file(c.json, document.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
  if (!c.patterns.empty()) {
    write_patterns(c.patterns, model, sets, selection);
    fmt::print("\n{}: the patterns\n", c.patterns);
  }
  if (!c.out.empty()) {
    write_study_page(c.out, document, selection.ids(),
                     [&](Index text, study::HeadId head, Index i, std::span<double> row) {
                       patterns.row(text, head, i, row);
                     });
    fmt::print("\n{}: open it in a browser\n", c.out);
  }
  return kDone;
}

int study_run(const StudyCommand& c, std::uint64_t seed) {
  check(c);
  const Run run = Run::open(c.run);
  guard_files(c, run);
  const Studied what = studied(c, run, seed);
  const auto study = [&](const auto& model) { return study_model(c, run, model, what, seed); };
  return with_model(run, study, NotFinite::refuse);
}

}  // namespace

Action study_command(Arguments& args, CommonOptions& common) {
  const auto c = std::make_shared<StudyCommand>();
  args.add_required("run", "RUN", "run folder", c->run);
  args.bind(*c);
  return [c, &common] { return study_run(*c, common.seed); };
}

}  // namespace headwise::cli
