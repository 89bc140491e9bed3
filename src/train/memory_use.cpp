#include "headwise/train/memory_use.hpp"

#include <algorithm>
#include <iterator>

#include "headwise/core/memory.hpp"
#include "headwise/core/printable.hpp"

namespace headwise {

double parameters_of(const ModelConfig& c) {
  const auto width = static_cast<double>(c.width), layers = static_cast<double>(c.layers);
  const auto vocab = static_cast<double>(c.vocab), context = static_cast<double>(c.context);
  const double norm = c.bias ? 2 * width : width;
  const double attention = 4 * width * (width + (c.bias ? 1 : 0));
  const double mlp = c.attention_only ? 0 : 8 * width * width + (c.bias ? 5 * width : 0) + norm;
  return (vocab * (c.tie ? 1 : 2) + context) * width + layers * (norm + attention + mlp) + norm;
}

MemoryUse training_memory(const ModelConfig& c, Index batch, Index width) {
  const auto number = [](Index n) { return static_cast<double>(n); };
  const double bytes = number(width), tokens = number(batch) * number(c.context);
  // Numbers per token and layer, in widths C. Attention: the stream before and after, the norm's
  // result, Q, K, V, the heads' results and the projection. MLP: norm's result, the hidden layer of
  // 4 C, its projection; where it is small, GELU's result and derivative too (ops/gelu_linear).
  constexpr double kAttention = 8, kMlp = 6, kGelu = 8;
  constexpr double kSmallHidden = 1 << 18, kSmallPattern = 64;
  const bool small_hidden = tokens * 4 * number(c.width) <= kSmallHidden;
  double layer = kAttention * number(c.width);
  if (!c.attention_only) layer += (kMlp + (small_hidden ? kGelu : 0)) * number(c.width);
  if (number(c.context) <= kSmallPattern) layer += number(c.heads) * number(c.context);
  // The logits and their gradient; of a large vocabulary only some rows are held at a time.
  constexpr double kLargeVocab = 4096, kRows = 256;
  const double rows = number(c.vocab) < kLargeVocab ? tokens : std::min(tokens, 8 * kRows);
  const double parameters = parameters_of(c);
  return {.weights = bytes * parameters,
          .optimizer = 3 * bytes * parameters,
          .activations = bytes * (tokens * number(c.layers) * layer + 2 * rows * number(c.vocab))};
}

void require_numbers(const TensorFile& file, const ModelConfig& c) {
  double numbers = 0;
  for (const auto& [name, entry] : file.entries())
    numbers += static_cast<double>(entry.shape.size());
  const double needed = parameters_of(c);
  require<DataError>(needed <= 2 * numbers,
                     "{}: has {:.0f} numbers, but the model of config.json has {:.0f} parameters",
                     printable(file.path()), numbers, needed);
}

std::string bytes_text(double bytes) {
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  for (bytes /= 1000; bytes >= 1000 && unit + 1 < std::size(kUnits); bytes /= 1000) ++unit;
  return fmt::format("{:.{}f} {}", bytes, bytes < 10 ? 1 : 0, kUnits[unit]);
}

void require_memory(const MemoryUse& use) {
  const double available = available_memory();
  require<Error>(use.total() <= available,
                 "memory: training takes about {} (weights {}, optimizer {}, activations {}), this "
                 "machine has {} available; make the model or the batch smaller, or try with "
                 "--force",
                 bytes_text(use.total()), bytes_text(use.weights), bytes_text(use.optimizer),
                 bytes_text(use.activations), bytes_text(available));
}

}  // namespace headwise
