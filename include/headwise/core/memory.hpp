// What tensors hold at the moment, and the two switches of the buffer pool behind them.
#pragma once

#include <cstddef>

namespace headwise {

/// Buffers in use by tensors, and how often the pool had to ask the system for a large one.
struct MemoryStats {
  std::size_t live_buffers = 0;       ///< buffers that some tensor owns
  std::size_t live_bytes = 0;         ///< their bytes
  std::size_t cached_bytes = 0;       ///< bytes kept for the next tensor of that size
  std::size_t allocations = 0;        ///< buffers of 4 KiB or more taken from the system
  std::size_t large_allocations = 0;  ///< those of 1 MiB or more
};

MemoryStats memory_stats();

/// Bytes that this process could still take: the least of what the machine has left (MemAvailable),
/// its address-space limit (RLIMIT_AS) and its control group's limit. Infinite where nothing says.
double available_memory();

/// While on, Tensor::uninitialized is filled with NaN, so that reading what nobody wrote shows.
/// Tests switch it on.
void poison_uninitialized(bool on);

}  // namespace headwise
