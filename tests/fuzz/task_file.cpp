#include "fuzz/target.hpp"
#include "headwise/data/source.hpp"

namespace headwise::fuzz {

/// A file of prompts and answers, and a batch of each of its parts.
FUZZ_TARGET(task_file) {
  const std::string path = file("input.tsv", input);
  accepted([&] {
    const TaskSource source(make_task(path));
    const Task& task = source.task();
    must(task.train_size() >= 1 && task.valid_size() >= 1, "each part has an example");
    must(task.longest() >= 4, "prompt, tab, answer and newline have a character each");
    Rng rng(1);
    for (const bool valid : {false, true}) {
      const Batch batch = valid ? source.valid(2, rng) : source.train(2, rng);
      must(batch.inputs.shape == Shape({2, task.longest() - 1}),
           "a batch has the longest's length");
      for (Index b = 0; b < 2; ++b) {
        Index targets = 0;
        for (Index i = 0; i < batch.targets.shape[1]; ++i) {
          const Id id =
              batch.targets.values[static_cast<std::size_t>(b * batch.targets.shape[1] + i)];
          must(id == kIgnore || (id >= 0 && id < source.tokenizer().vocab()),
               "a target is a token, or none");
          if (id != kIgnore) ++targets;
        }
        must(targets >= 2, "an answer and a newline are predicted");
      }
    }
  });
}

}  // namespace headwise::fuzz
