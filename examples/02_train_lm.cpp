// Trains a small language model on the built-in stories by library calls, and lets it write. Build
// and run:   cmake --build build --target 02_train_lm && build/examples/02_train_lm [STEPS]
#include <cstdlib>

#include "headwise/headwise.hpp"

using namespace headwise;

int main(int argc, char** argv) {
  init(argc, argv);
  const Index steps = argc > 1 ? std::atoll(argv[1]) : 150;

  const Tokenizer tokenizer = Tokenizer::learn(TokenizerKind::character, builtin_text());
  const ModelConfig config{
      .vocab = tokenizer.vocab(), .layers = 2, .heads = 4, .width = 64, .context = 64};
  const TextSource text(tokenizer.encode(builtin_text()), config.context);

  Rng rng(1);
  Decoder<float> model(config, rng);
  fmt::print("{} parameters, {} tokens to train on\n", parameter_count(model),
             text.parts().train.size());

  Trainer<float> trainer(
      model,
      {.batch = 16, .steps = steps, .lr = 3e-3, .warmup = 20, .eval_every = 50, .eval_batches = 5},
      text, 1);
  const double at_first = evaluate(model, text, 16, 5).mean;
  while (!trainer.done()) {
    const StepRecord step = trainer.step();
    if (step.step % 50 != 0) continue;
    const EvalRecord e = trainer.evaluate();
    fmt::print("step {:4}  train {:.3f}  validation {:.3f}\n", e.step, e.train_loss, e.val_loss);
  }

  const std::vector<Id> prompt = tokenizer.encode("The boats");
  const std::vector<Id> more = sample(model, prompt, 120, {.temperature = 0.8}, rng);
  fmt::print("\n{}{}\n", tokenizer.decode(prompt), tokenizer.decode(more));
  return trainer.val_loss() < at_first ? 0 : 1;
}
