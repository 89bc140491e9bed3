#include "headwise/data/task.hpp"

#include <algorithm>

#include "core/utf8.hpp"
#include "data/task_parts.hpp"
#include "headwise/core/error.hpp"
#include "headwise/core/hash.hpp"
#include "headwise/core/printable.hpp"
#include "headwise/data/tokenizer.hpp"

namespace headwise {
namespace {

class GeneratedTask final : public Task {
 public:
  GeneratedTask(TaskSpec spec, Index length) : spec_(std::move(spec)), length_(length) {}

  std::string name() const override { return spec_.name; }
  std::string about() const override { return spec_.about; }
  std::vector<std::string> alphabet() const override { return characters_of(spec_.alphabet); }
  Index longest() const override { return spec_.longest(length_); }
  Accuracy accuracy() const override { return spec_.accuracy; }
  Example train(Rng& rng) const override { return draw(false, rng); }
  Example valid(Rng& rng) const override { return draw(true, rng); }

 private:
  Example draw(bool valid, Rng& rng) const {
    constexpr int kTries = 10000;  // none in so many: there is none
    for (int i = 0; i < kTries; ++i) {
      const std::string input = spec_.input(length_, rng);
      if (validates(input) == valid) return spec_.example(input);
    }
    throw ParameterError(
        fmt::format("task: {} of length {} leaves no input to {} ({} draws); a greater one does",
                    spec_.name, length_, valid ? "validate on" : "train on", kTries));
  }

  TaskSpec spec_;
  Index length_;
};

}  // namespace

bool validates(std::string_view input) {
  // FNV-1a's low bits are weak, so the finalizer of SplitMix64 (Steele et al. 2014, "Fast
  // splittable pseudorandom number generators", fig. 17; Stafford's variant 13) mixes them.
  std::uint64_t z = fnv1a(input);
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return (z ^ z >> 31) % 10 == 0;
}

std::vector<std::string> characters_of(std::string_view text) {
  return Tokenizer::learn(TokenizerKind::character, text).tokens();
}

std::unique_ptr<Task> generated_task(const TaskSpec& spec, Index length) {
  if (length == 0) length = spec.length;
  require<ParameterError>(spec.least <= length && length <= kGreatestLength,
                          "length: must be in [{}, {}], got {}", spec.least, kGreatestLength,
                          length);
  return std::make_unique<GeneratedTask>(spec, length);
}

Example line_example(std::string_view prompt, std::string_view answer) {
  Example e{fmt::format("{}\t{}\n", prompt, answer), {}};
  const auto with_mark = [](std::string_view part) {  // the tab, or the newline
    return static_cast<std::size_t>(characters_in(part) + 1);
  };
  e.counted.assign(with_mark(prompt), 0);
  e.counted.insert(e.counted.end(), with_mark(answer), 1);
  return e;
}

std::vector<TaskSpec> task_table() {
  return {
#define HEADWISE_TASK(name) tasks::name(),
#include "headwise/data/tasks.def"
#undef HEADWISE_TASK
  };
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const TaskSpec& spec : task_table()) names.push_back(spec.name);
  return names;
}

bool is_task_file(std::string_view name) {
  return name.find_first_of("./") != std::string_view::npos;
}

std::unique_ptr<Task> make_task(const std::string& name_or_file, Index length) {
  for (const TaskSpec& spec : task_table())
    if (spec.name == name_or_file) return generated_task(spec, length);
  require<ParameterError>(
      is_task_file(name_or_file),
      "task: '{}' is none of {}, and no file (FILE.tsv: a file's name has a '.' "
      "or '/' in it)",
      printable(name_or_file), fmt::join(task_names(), ", "));
  require<ParameterError>(length == 0, "length: {} was given, but the lines of {} have their own",
                          length, printable(name_or_file));
  return file_task(name_or_file);
}

Example Task::valid_example(Index i) const {
  throw ShapeError(fmt::format("task: no validation example {}, the part has {}", i, valid_size()));
}

Batch task_batch(const Task& task, FunctionRef<std::vector<Id>(std::string_view)> encode,
                 const std::vector<Example>& examples) {
  const Shape shape{std::ssize(examples), task.longest() - 1};
  const Id newline = encode("\n").at(0);
  Ids inputs(shape, std::vector<Id>(static_cast<std::size_t>(shape.size()), newline));
  Ids targets(shape, std::vector<Id>(static_cast<std::size_t>(shape.size()), kIgnore));
  for (std::size_t b = 0; b < examples.size(); ++b) {
    const Example& e = examples[b];
    const std::vector<Id> ids = encode(e.text);
    require(ids.size() == e.counted.size(), "task: {} tokens for {} characters, need one each",
            ids.size(), e.counted.size());
    const std::size_t row = b * static_cast<std::size_t>(shape[1]);
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      inputs.values[row + i] = ids[i];
      if (e.counted[i + 1] != 0) targets.values[row + i] = ids[i + 1];
    }
  }
  return {std::move(inputs), std::move(targets)};
}

Batch task_batch(const Task& task, FunctionRef<std::vector<Id>(std::string_view)> encode,
                 bool valid, Index batch, Rng& rng) {
  std::vector<Example> examples;
  for (Index b = 0; b < batch; ++b) examples.push_back(valid ? task.valid(rng) : task.train(rng));
  return task_batch(task, encode, examples);
}

}  // namespace headwise
