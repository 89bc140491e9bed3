// headwise study RUN: what each head of a trained model does.
#include "headwise/study/study.hpp"

#include <fmt/format.h>

#include "cli/load.hpp"
#include "cli/material.hpp"
#include "cli/options.hpp"
#include "cli/study_json.hpp"
#include "cli/study_log.hpp"
#include "cli/study_table.hpp"
#include "headwise/core/file.hpp"

namespace headwise::cli {
namespace {

struct StudyCommand {
  std::string run, data, text, json;
  Index sequences = 100;

  void visit(auto&& v) {
    v("data", data, "text to look at; default: the run's own validation part");
    v("text", text, "one text to look at instead");
    v("sequences", sequences,
      "sequences of data, and of repeated random tokens, to score heads on");
    v("json", json, "file for everything that was found, as one JSON document");
  }
};

study::Sequences data_of(const StudyCommand& c, const Run& run, std::uint64_t seed) {
  const Index context = run.config().model.context;
  if (!c.text.empty()) {
    std::vector<Id> ids = about("--text", [&] { return run.tokenizer().encode(c.text); });
    require<UsageError>(std::ssize(ids) >= 2 && std::ssize(ids) <= context,
                        "--text: {} tokens, need from 2 to the context of {}", ids.size(), context);
    return study::one_sequence(std::move(ids));
  }
  if (!c.data.empty() && run.config().task.empty()) {
    const std::vector<Id> ids =
        about(c.data, [&] { return run.tokenizer().encode(read_text(c.data)); });
    const TextSource source(Split{ids, ids, true}, context);
    return about(c.data, [&] { return study::data_sequences(source, c.sequences, seed); });
  }
  return study::data_sequences(*material_of_run(run, c.data).source, c.sequences, seed);
}

study::Sets sets_of(const StudyCommand& c, const Run& run, std::uint64_t seed) {
  const RunConfig& config = run.config();
  const Index context = config.model.context;
  study::Sets sets{.data = data_of(c, run, seed)};
  if (c.text.empty())
    sets.repeated =
        study::repeated_sequences(sets.data, c.sequences, context, line_end(run.tokenizer()), seed);
  if (config.task.empty() && config.data.empty() && c.text.empty())
    sets.stories = study::story_questions(run.tokenizer(), context, 2 * c.sequences, seed + 1000);
  return sets;
}

int study_run(const StudyCommand& c, std::uint64_t seed) {
  require<UsageError>(c.sequences >= 1, "--sequences: {} is not 1 or more", c.sequences);
  require<UsageError>(c.text.empty() || c.data.empty(), "--text: cannot be given with --data");
  const Run run = Run::open(c.run);
  const study::Sets sets = sets_of(c, run, seed);
  return with_model(run, [&](const auto& model) {
    const std::vector<study::HeadStudy> heads = study::study_heads(model, sets, seed);
    print_heads(heads);
    if (!c.json.empty()) {
      nlohmann::json document = {{"headwise", HEADWISE_VERSION}, {"run", run.folder()}};
      for (const study::HeadStudy& head : heads) document["heads"].push_back(json_of(head));
      replace_file(c.json, document.dump(1) + "\n");
    }
    return kDone;
  });
}

}  // namespace

std::function<int()> study_command(CLI::App& app, CommonOptions& common) {
  const auto c = std::make_shared<StudyCommand>();
  app.add_option("run", c->run, "run folder")->required()->type_name("RUN");
  bind(app, *c);
  return [c, &common] { return study_run(*c, common.seed); };
}

}  // namespace headwise::cli
