// The buffer pool behind Tensor: a training step after the first takes no large buffer from the
// system. One mutex; it is never destroyed, so that it outlives the last tensor.
#pragma once

#include <cstddef>

namespace headwise {

/// 64-byte aligned memory of at least `bytes`.
void* pool_take(std::size_t bytes);
/// Gives back what pool_take(bytes) returned.
void pool_give(void* memory, std::size_t bytes);
bool poisoned();

}  // namespace headwise
