// headwise data NAME: writes a built-in corpus, or shows what is known about its words.
#include <fmt/format.h>

#include <filesystem>

#include "cli/options.hpp"
#include "headwise/core/file.hpp"
#include "headwise/data/stories.hpp"

namespace headwise::cli {
namespace {

struct DataCommand {
  std::string name;
  Index sentences = kCorpusSentences;
  Index show = 0;
  std::string out;
  bool json_lines = false;

  void visit(auto&& v) {
    v("sentences", sentences, "stories until they have this many sentences");
    v("show", show, "show so many stories with what is known about their words; 0: the plain text");
    v("out", out, "file to write the text to, and FILE.jsonl for what is known; default: stdout");
    v("json", json_lines, "JSON lines on stdout: each story with what is known about its words");
  }
};

/// "'are' plural".
std::string named(const Story& story, const Mention& m) {
  std::string text = fmt::format("'{}' {}", story.word(m), name_of(m.number));
  if (m.gender != Gender::none) text += fmt::format(" {}", name_of(m.gender));
  if (m.sense != Sense::none) text += fmt::format(" {}", name_of(m.sense));
  return text;
}

/// Each sentence, and under it its verbs, pronouns and banks.
void show(const Story& story) {
  for (std::size_t i = 0; i < story.sentences.size(); ++i) {
    const Index begin = story.sentences[i];
    const Index end = i + 1 < story.sentences.size() ? story.sentences[i + 1] - 1
                                                     : static_cast<Index>(story.text.size());
    const auto here = [&](const Mention& m) { return begin <= m.begin && m.begin < end; };
    fmt::print("{}\n", story.word({.begin = begin, .end = end}));
    for (const Agreement& a : story.verbs) {
      if (!here(a.verb)) continue;
      std::string attractors;
      for (const Mention& m : a.attractors)
        attractors += (attractors.empty() ? "; attractors: " : ", ") + named(story, m);
      fmt::print("    verb {} <- subject {}{}\n", named(story, a.verb), named(story, a.subject),
                 attractors);
    }
    for (const Reference& r : story.pronouns)
      if (here(r.pronoun))
        fmt::print("    pronoun {} <- antecedent {}\n", named(story, r.pronoun),
                   named(story, r.antecedent));
    for (const Bank& b : story.banks)
      if (here(b.word)) fmt::print("    {} <- cue '{}'\n", named(story, b.word), story.word(b.cue));
  }
}

int write_stories(const DataCommand& c, std::uint64_t seed) {
  require<UsageError>(c.sentences >= 1, "--sentences: {} is not 1 or more", c.sentences);
  require<UsageError>(c.show >= 0, "--show: {} is not 0 or more", c.show);
  require<UsageError>(c.show == 0 || !c.json_lines, "--show: is for people, without --json");
  const std::string known_path = c.out + ".jsonl";
  if (!c.out.empty())
    for (const std::string& path : {c.out, known_path})
      require<UsageError>(!std::filesystem::exists(path), "--out: {} is there already", path);

  const std::vector<Story> all = stories(c.sentences, seed);
  const std::string text = stories_text(all);
  std::string known;
  for (const Story& story : all) known += annotation(story) + '\n';
  if (!c.out.empty()) {
    replace_file(c.out, text);
    replace_file(known_path, known);
  }
  const auto shown = std::min(all.size(), static_cast<std::size_t>(c.show));
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) fmt::print("\n");
    show(all[i]);
  }
  if (c.json_lines)
    fmt::print("{}", known);
  else if (c.out.empty() && c.show == 0)
    fmt::print("{}", text);
  return kDone;
}

struct Corpus {
  const char* name;
  int (*write)(const DataCommand&, std::uint64_t seed);
};
constexpr Corpus kCorpora[] = {{"stories", write_stories}};

int write_data(const DataCommand& c, std::uint64_t seed) {
  std::string names;
  for (const Corpus& corpus : kCorpora) {
    if (c.name == corpus.name) return corpus.write(c, seed);
    names += fmt::format("{}{}", names.empty() ? "" : " or ", corpus.name);
  }
  throw UsageError(fmt::format("data: expected {}, got '{}'", names, c.name));
}

}  // namespace

std::function<int()> data_command(CLI::App& app, CommonOptions& common) {
  const auto c = std::make_shared<DataCommand>();
  app.add_option("name", c->name, "what to write: stories")->required()->type_name("NAME");
  bind(app, *c);
  return [c, &common] { return write_data(*c, common.seed); };
}

}  // namespace headwise::cli
