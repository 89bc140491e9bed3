#include "cli/material.hpp"

#include <array>

#include "data/foreign.hpp"
#include "headwise/core/hash.hpp"
#include "headwise/core/printable.hpp"

namespace headwise::cli {
namespace {

/// "812 words and characters, 3.21 bytes a token".
std::string vocabulary_text(const Tokenizer& tokenizer, double bytes_per_token) {
  static constexpr std::array<std::string_view, 3> kWhat = {"different characters", "byte values",
                                                            "words and characters"};
  return fmt::format("{} {}, {:.2f} bytes a token", tokenizer.vocab(),
                     kWhat[static_cast<std::size_t>(tokenizer.kind())], bytes_per_token);
}

/// The text at `path`; the built-in stories for no path.
struct FoundText {
  explicit FoundText(const std::string& path, Accept accept = Accept::any)
      : text(path.empty() ? std::string(builtin_text()) : read_text(path, &marked, accept)) {}
  bool marked = false;
  std::string text;
};

Material of_text(const FoundText& found, const Tokens& tokens, Index context) {
  const auto& [marked, text] = found;
  Tokenizer tokenizer =
      tokens.known ? *tokens.known : Tokenizer::learn(tokens.kind, text, tokens.min_count);
  auto source = std::make_unique<TextSource>(tokenizer.encode_packed(text), context);
  const Split& parts = source->parts();
  const auto bytes = static_cast<double>(tokenizer.packed_bytes(parts.valid));
  Material m(std::move(tokenizer), text_hash(text));
  m.bytes_per_token = bytes / static_cast<double>(parts.valid.size());
  m.about = fmt::format("text        {} tokens to train on{}; {}", parts.train.size(),
                        parts.shared ? "" : fmt::format(", {} to validate on", parts.valid.size()),
                        vocabulary_text(m.tokenizer, m.bytes_per_token));
  if (parts.shared)
    m.notes.emplace_back(
        "the text is too short to keep a part for validation: losses are of the training text");
  if (marked) m.notes.emplace_back("the byte-order mark at its start is left out");
  const std::string_view format = foreign_format(text);
  if (!format.empty())  // only bytes come so far
    m.notes.push_back(
        fmt::format("it looks like {}, not like a text; each byte is a token", format));
  else if (text.find('\0') != std::string::npos)
    m.notes.emplace_back("the text has zero bytes (U+0000); they are kept");
  if (format.empty() && text.find('\r') != std::string::npos)
    m.notes.emplace_back("the text has carriage returns (\\r); they are kept");
  m.source = std::move(source);
  return m;
}

std::string place_of_text(const std::string& path) {
  return path.empty() ? "the built-in stories" : path == "-" ? "standard input" : path;
}

void require_same(const Run& run, const std::string& what, const std::string& hash) {
  require<DataError>(hash == run.config().data_hash,
                     "{}: the {} is not the one the run was started with (hash {}, was {})",
                     run.folder(), what, hash, run.config().data_hash);
}

}  // namespace

Material text_material(const std::string& path, const Tokens& tokens, Index context) {
  const FoundText found(path);
  return about(place_of_text(path), [&] { return of_text(found, tokens, context); });
}

Material task_material(std::unique_ptr<const Task> task, const std::optional<Tokenizer>& known) {
  auto source = std::make_unique<TaskSource>(std::move(task), known);
  const Task& t = source->task();
  Material m(source->tokenizer(), t.hash());
  m.about = fmt::format("task        {}: {}; {} different characters", t.name(), t.about(),
                        m.tokenizer.vocab());
  if (t.shared())
    m.notes.push_back(
        fmt::format("{} examples: too few to keep a part for validation; what is said of them is "
                    "of the training examples",
                    t.train_size()));
  else if (t.valid_size() > 0)
    m.notes.push_back(
        fmt::format("{} examples to train on, {} to validate on", t.train_size(), t.valid_size()));
  m.source = std::move(source);
  return m;
}

std::unique_ptr<const Task> task_of(const Run& run) {
  try {
    return make_task(run.config().task, run.config().length);
  } catch (const UsageError& e) {  // not of this command line
    throw DataError(fmt::format("{}: {}", printable(run.directory().path(Run::kConfig)), e.what()));
  }
}

GivenText given_text(const Run& run, const std::string& path) {
  const FoundText found(path);
  const bool own = run.config().task.empty() && text_hash(found.text) == run.config().data_hash;
  GivenText given{
      .tokens = about(place_of_text(path), [&] { return run.tokenizer().encode(found.text); }),
      .held_out = std::nullopt,
      .what = own ? "training text" : printable(place_of_text(path))};
  if (own) given.held_out = false;
  return given;
}

Material material_of_run(const Run& run, const std::string& path) {
  const RunConfig& config = run.config();
  if (!config.task.empty()) {
    require<UsageError>(path.empty(),
                        "--data: {}, but {} was trained on the task {}, not on a text", path,
                        run.folder(), config.task);
    Material m = task_material(task_of(run), run.tokenizer());
    require_same(run, "task '" + config.task + "'", m.hash);
    return m;
  }
  const std::string& from = path.empty() ? config.data : path;
  require<UsageError>(!path.empty() || from != "-",
                      "--data: {} was trained from standard input; give its text again",
                      run.folder());
  const FoundText found(from, path.empty() ? Accept::regular : Accept::any);
  require_same(run, "text '" + from + "'", text_hash(found.text));
  return about(run.folder(), [&] {
    return of_text(found, {.kind = {}, .min_count = 1, .known = run.tokenizer()},
                   config.model.context);
  });
}

}  // namespace headwise::cli
