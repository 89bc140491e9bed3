// Random numbers by counter: Philox 4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy
// as 1, 2, 3", sec. 3.3). The same bits on every platform, for any number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "headwise/core/tensor.hpp"

namespace headwise {

/// The 128 random bits that belong to a counter under a key.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

/// A stream of random numbers that is nothing but (seed, stream, position): draw n is a pure
/// function of the three. Streams of one seed are independent of each other.
class Rng {
 public:
  explicit Rng(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  std::uint32_t bits();
  /// Uniform in (0,1), never 0 or 1: (bits + 1/2) / 2^32.
  double uniform() { return (static_cast<double>(bits()) + 0.5) * 0x1p-32; }
  /// Standard normal: the inverse of its distribution (Wichura 1988, AS 241) at 52 random bits.
  double normal();
  /// Uniform in [0, n), without bias. n from 1 to 2^32 - 1.
  Index below(Index n);
  /// 0 .. n-1 in random order (Fisher and Yates).
  std::vector<Index> permutation(Index n);

  /// Draws 4 block .. 4 block + 3 of the stream, whatever the position: for loops whose draws
  /// belong to places, not to an order (dropout).
  [[nodiscard]] std::array<std::uint32_t, 4> four(std::uint64_t block) const;
  /// Sets aside the next n draws, from a multiple of four on: a copy that stands at the first of
  /// them, for four().
  Rng reserve(std::uint64_t n);
  [[nodiscard]] std::uint64_t position() const { return position_; }

 private:
  std::uint64_t seed_, stream_, position_ = 0;
  std::array<std::uint32_t, 4> words_{};  // of block_, so that four draws cost one philox
  std::uint64_t block_ = ~std::uint64_t{0};
};

/// Who draws: each has streams of his own of a seed, numbered by what he draws for (a step, a
/// sample, a story).
enum class Purpose : std::uint64_t {
  weights = 0,
  batches = 1,
  dropout = 2,
  samples = 3,
  stories = 4,  // the corpus depends on it
  training_samples = 5,
  task_lines = 6,
  study = 7,
  resampling = 8,
  pruning = 9
};
inline Rng stream(std::uint64_t seed, Purpose purpose, Index number = 0) {
  return Rng(seed, static_cast<std::uint64_t>(purpose) << 48 | static_cast<std::uint64_t>(number));
}

/// A tensor of normal numbers with mean 0 and standard deviation std, in row-major order of draws.
template <Real T>
Tensor<T> normal_tensor(const Shape& shape, double std, Rng& rng);

}  // namespace headwise
