// headwise data NAME: writes the stories or a task's sequences, or shows what is known of them.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/options.hpp"
#include "cli/output_guard.hpp"
#include "headwise/core/file.hpp"
#include "headwise/data/stories.hpp"
#include "headwise/data/task.hpp"
#include "headwise/data/tokenizer.hpp"

namespace headwise::cli {
namespace {

struct DataCommand {
  std::string name;
  Index sentences = kCorpusSentences, length = 0;
  Index show = 0;
  std::string out;
  bool json_lines = false, force = false;

  void visit(auto&& v) {
    v("sentences", sentences,
      "stories until they have this many sentences; or so many sequences of a task");
    v("length", length, "length of a task's inputs; 0: the task's own");
    v("show", show, "show so many, with what is known about them; 0: all, as plain text");
    v("out", out, "file to write the text to, and FILE.jsonl for what is known; default: stdout");
    v("json", json_lines, "JSON lines on stdout: each story or sequence, with what is known");
    v("force", force, kForceHelp);
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

/// Texts, and what is known of each as a line of JSON, to where they are wanted.
void write(const DataCommand& c, const std::string& text, const std::string& known) {
  if (!c.out.empty()) {
    replace_file(c.out, text);
    replace_file(c.out + ".jsonl", known);
  }
  if (c.json_lines)
    fmt::print("{}", known);
  else if (c.out.empty() && c.show == 0)
    fmt::print("{}", text);
}

int write_stories(const DataCommand& c, std::uint64_t seed) {
  require<UsageError>(c.length == 0, "--length: {} is for tasks, not for stories", c.length);
  const std::vector<Story> all = stories(c.sentences, seed);
  const std::string text = stories_text(all);
  std::string known;
  for (const Story& story : all) known += annotation(story) + '\n';
  const auto shown = std::min(all.size(), static_cast<std::size_t>(c.show));
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) fmt::print("\n");
    show(all[i]);
  }
  write(c, text, known);
  return kDone;
}

/// A sequence, and under it a mark at each character that is to be predicted.
void show(const Example& e) {
  const Tokenizer characters = Tokenizer::learn(TokenizerKind::character, e.text);
  std::string seen, marks;
  std::size_t i = 0;
  for (const Id id : characters.encode(e.text)) {
    const std::string& c = characters.tokens()[static_cast<std::size_t>(id)];
    seen += c == "\t" ? "␉" : c == "\n" ? "␤" : c;
    marks += e.counted[i++] != 0 ? '^' : ' ';
  }
  fmt::print("{}\n{}\n", seen, marks);
}

/// Sequences of a task, one in ten of its validation part, as a file of them would be parted again.
int write_task(const DataCommand& c, std::uint64_t seed) {
  const std::unique_ptr<Task> task = make_task(c.name, c.length);
  Rng rng = stream(seed, Purpose::task_lines);
  std::string text, known;
  const bool only_shown = c.show > 0 && c.out.empty();
  for (Index i = 0; i < (only_shown ? c.show : c.sentences); ++i) {
    const Example e = i % 10 == 9 ? task->valid(rng) : task->train(rng);
    text += e.text;
    known += nlohmann::json{{"text", e.text}, {"counted", e.counted}}.dump() + '\n';
    if (i < c.show) show(e);
  }
  write(c, text, known);
  return kDone;
}

int write_data(const DataCommand& c, std::uint64_t seed) {
  require<UsageError>(c.sentences >= 1, "--sentences: must be >= 1, got {}", c.sentences);
  require<UsageError>(c.show >= 0, "--show: must be >= 0, got {}", c.show);
  require<UsageError>(c.show == 0 || !c.json_lines, "--show: is for people, without --json");
  const std::vector<std::string> tasks = task_names();
  const bool is_task = std::find(tasks.begin(), tasks.end(), c.name) != tasks.end();
  require<UsageError>(is_task || c.name == "stories", "data: expected stories or {}, got '{}'",
                      fmt::join(tasks, " or "), c.name);
  if (!c.out.empty()) {
    OutputGuard guard(c.force);
    guard.writes("--out", c.out, Output::text);
    guard.writes("--out", c.out + ".jsonl", Output::text);
  }
  return is_task ? write_task(c, seed) : write_stories(c, seed);
}

}  // namespace

Action data_command(Arguments& args, CommonOptions& common) {
  const auto c = std::make_shared<DataCommand>();
  args.add_required("name", "NAME",
                    fmt::format("what to write: stories or {}", fmt::join(task_names(), " or ")),
                    c->name);
  args.bind(*c);
  return [c, &common] { return write_data(*c, common.seed); };
}

}  // namespace headwise::cli
