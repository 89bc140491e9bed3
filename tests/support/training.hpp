// A small training run, and what it left behind.
#pragma once

#include "headwise/core/file.hpp"
#include "headwise/train/trainer.hpp"
#include "support/files.hpp"
#include "support/models.hpp"

namespace headwise::test {

/// A text of `vocab` different tokens that is no pure noise: a walk that mostly takes the same
/// turns.
inline std::vector<Id> walk(Index length, Index vocab, std::uint64_t seed = 1) {
  Rng rng(seed);
  std::vector<Id> tokens;
  for (Index i = 0; i < length; ++i) {
    const Index next =
        tokens.empty() || rng.below(5) == 0 ? rng.below(vocab) : (3 * tokens.back() + 1) % vocab;
    tokens.push_back(static_cast<Id>(next));
  }
  return tokens;
}

/// A model, its text and its trainer, which refers to both.
template <Real T>
struct Training {
  Decoder<T> model;
  TextSource text;
  Trainer<T> trainer;

  Training(const ModelConfig& config, const TrainOptions& options, std::uint64_t seed)
      : model(decoder(config, seed)),
        text(walk(600, config.vocab), config.context),
        trainer(model, options, text, seed) {}
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// So many steps, and their losses.
  std::vector<double> run(Index steps) {
    std::vector<double> losses;
    for (Index i = 0; i < steps; ++i) losses.push_back(trainer.step().loss);
    return losses;
  }
  /// The bytes that save() writes: weights, moments, counters and random state.
  [[nodiscard]] std::string saved() const {
    const TemporaryFolder folder;
    trainer.save(folder / "state.safetensors");
    return read_file(folder / "state.safetensors");
  }

 private:
  static Decoder<T> decoder(const ModelConfig& config, std::uint64_t seed) {
    Rng rng(seed);
    return Decoder<T>(config, rng);
  }
};

inline const ModelConfig kSmallModel{
    .vocab = 10, .layers = 2, .heads = 2, .width = 16, .context = 8, .dropout = 0.1};
inline const TrainOptions kSmallTraining{.batch = 4,
                                         .accumulate = 2,
                                         .steps = 20,
                                         .lr = 1e-2,
                                         .min_lr = 1e-3,
                                         .warmup = 4,
                                         .eval_every = 5,
                                         .eval_batches = 3};

}  // namespace headwise::test
