// How much memory training takes, before it is taken.
#pragma once

#include <string>

#include "headwise/core/safetensors.hpp"
#include "headwise/models/decoder.hpp"

namespace headwise {

/// Number of parameters of a decoder of this shape, without making one. A double: a shape that
/// nobody can build may have more than an Index counts.
double parameters_of(const ModelConfig& c);

/// Memory of a training run, in bytes: an estimate. For the presets it is within a third of the
/// measured peak.
struct MemoryUse {
  double weights = 0;
  double optimizer = 0;    ///< gradients and two moments per parameter
  double activations = 0;  ///< what forward keeps for backward, of one batch, with the logits
  [[nodiscard]] double total() const { return weights + optimizer + activations; }
};

/// Memory of training on batches of B sequences of c.context tokens, each number of `width` bytes
/// (4: float, 8: double). Accumulated batches follow each other, so they take no more.
MemoryUse training_memory(const ModelConfig& c, Index batch, Index width);

/// Throws Error naming the need, its parts and what the machine has, when `use` is more than
/// available_memory().
void require_memory(const MemoryUse& use);

/// Throws DataError when a file of tensors has less than half of the numbers of such a model:
/// before the memory for it is taken.
void require_numbers(const TensorFile& file, const ModelConfig& c);

/// "1.2 GB".
std::string bytes_text(double bytes);

}  // namespace headwise
