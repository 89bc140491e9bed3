// A task's examples from a file: prompt, tab, answer a line.
#include <algorithm>
#include <unordered_map>

#include "data/foreign.hpp"
#include "data/task_parts.hpp"
#include "headwise/core/error.hpp"
#include "headwise/core/hash.hpp"

namespace headwise {
namespace {

class FileTask final : public Task {
 public:
  explicit FileTask(const std::string& path);

  std::string name() const override { return path_; }
  std::string about() const override { return "the prompts and answers of " + path_; }
  std::vector<std::string> alphabet() const override { return alphabet_; }
  Index longest() const override { return longest_; }
  Accuracy accuracy() const override { return Accuracy::whole; }
  Example train(Rng& rng) const override { return draw(train_, rng); }
  Example valid(Rng& rng) const override { return draw(valid_, rng); }
  Index train_size() const override { return static_cast<Index>(train_.size()); }
  Index valid_size() const override { return static_cast<Index>(valid_.size()); }
  Example valid_example(Index i) const override {
    if (i < 0 || i >= valid_size()) return Task::valid_example(i);
    return valid_[static_cast<std::size_t>(i)];
  }
  std::string hash() const override { return hash_; }
  bool shared() const override { return shared_; }

 private:
  static Example draw(const std::vector<Example>& part, Rng& rng) {
    return part[static_cast<std::size_t>(rng.below(static_cast<Index>(part.size())))];
  }

  std::string path_, hash_;
  std::vector<std::string> alphabet_;
  Index longest_ = 0;
  bool shared_ = false;
  std::vector<Example> train_, valid_;
};

/// The lines of a text without their ends, and without the empty ones at its end.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

struct Pair {
  std::string_view prompt, answer;
};

/// `where` is the file and the line's number.
Pair pair_of(std::string_view line, const std::string& where) {
  require<DataError>(!line.empty(), "{}: is empty", where);
  const auto tabs = std::count(line.begin(), line.end(), '\t');
  require<DataError>(tabs == 1, "{}: {} tabs, need one, between prompt and answer", where, tabs);
  const std::size_t tab = line.find('\t');
  require<DataError>(tab > 0, "{}: the prompt is empty", where);
  require<DataError>(tab + 1 < line.size(), "{}: the answer is empty", where);
  return {line.substr(0, tab), line.substr(tab + 1)};
}

/// Every character of the lines and their ends. `lines` are those that pair_of takes.
std::vector<std::string> alphabet_of(const std::vector<std::string_view>& lines,
                                     const std::string& path) {
  try {
    return characters_of(fmt::format("{}\n", fmt::join(lines, "\n")));
  } catch (const DataError&) {  // Now slowly: which line is it?
    for (std::size_t i = 0; i < lines.size(); ++i) {
      try {
        characters_of(lines[i]);
      } catch (const DataError& e) {
        throw DataError(fmt::format("{}: line {}: {}", path, i + 1, e.what()));
      }
    }
    throw;
  }
}

FileTask::FileTask(const std::string& path) : path_(path) {
  const std::string text = read_text(path);
  require<DataError>(foreign_format(text).empty(), "{}: is not UTF-8{}", path, foreign_hint(text));
  hash_ = text_hash(text);
  struct Answer {
    std::string_view text;
    std::size_t line;
  };
  std::unordered_map<std::string_view, Answer> answers;  // of the prompts so far
  std::size_t number = 0;
  const std::vector<std::string_view> lines = lines_of(text);
  for (const std::string_view line : lines) {
    const std::string where = fmt::format("{}: line {}", path, ++number);
    const auto [prompt, answer] = pair_of(line, where);
    const auto [known, is_new] = answers.emplace(prompt, Answer{answer, number});
    require<DataError>(known->second.text == answer,
                       "{}: '{}' has the answer '{}', but '{}' in line {}", where, prompt, answer,
                       known->second.text, known->second.line);
    if (!is_new) continue;
    Example e = line_example(prompt, answer);
    longest_ = std::max(longest_, static_cast<Index>(e.counted.size()));
    (validates(prompt) ? valid_ : train_).push_back(std::move(e));
  }
  require<DataError>(answers.size() >= 2, "{}: different examples: {}, need at least 2", path,
                     answers.size());
  alphabet_ = alphabet_of(lines, path);
  if (train_.empty() || valid_.empty()) {
    shared_ = true;
    if (train_.empty()) train_.swap(valid_);
    valid_ = train_;
  }
}

}  // namespace

std::unique_ptr<Task> file_task(const std::string& path) {
  return std::make_unique<FileTask>(path);
}

}  // namespace headwise
