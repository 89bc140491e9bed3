// What each head is worth: trains a small decoder for a few seconds, then closes its heads one by
// one and prints how far the validation loss rises. Build and run:
//   cmake --build build --target 03_heads && build/examples/03_heads [STEPS]
#include <cstdlib>

#include "headwise/headwise.hpp"

using namespace headwise;

/// Zeroes the columns of one head in the z (B,T,C) of one layer: what W_O adds then lacks it.
struct Close : Probe<float> {
  std::string name;
  Tensor<float> open;  // (C): 0 in the head's columns, 1 elsewhere

  Close(const ModelConfig& config, Index layer, Index head)
      : name(fmt::format("blocks.{}.attn.z", layer)), open(Tensor<float>::full({config.width}, 1)) {
    const Index d = config.width / config.heads;
    std::fill_n(open.data() + head * d, d, 0.0F);
  }
  [[nodiscard]] bool wants(std::string_view asked) const override { return asked == name; }
  Var<float> at(std::string_view, Var<float> z) override { return z * Var<float>(open); }
};

/// Mean loss over the batches; `probe` may be null.
double loss(const Decoder<float>& model, const std::vector<Batch>& batches, Probe<float>* probe) {
  double total = 0;
  for (const Batch& b : batches) total += model.loss({.probe = probe}, b.inputs, b.targets).item();
  return total / static_cast<double>(batches.size());
}

int main(int argc, char** argv) {
  const Index steps = argc > 1 ? std::atoll(argv[1]) : 200;

  const std::string_view corpus = builtin_text();
  const Tokenizer tokenizer = Tokenizer::learn(TokenizerKind::character, corpus);
  const ModelConfig config{
      .vocab = tokenizer.vocab(), .layers = 2, .heads = 4, .width = 64, .context = 64};
  const TextSource text(tokenizer.encode(corpus), config.context);
  Rng rng(1);
  Decoder<float> model(config, rng);
  Trainer<float> trainer(model, {.batch = 8, .steps = steps, .lr = 3e-3, .warmup = 20}, text, 1);
  while (!trainer.done()) trainer.step();

  std::vector<Batch> batches;
  for (int i = 0; i < 5; ++i) batches.push_back(text.valid(16, rng));
  const double whole = loss(model, batches, nullptr);
  fmt::print("validation loss {:.4f}\n\nlayer  head  rise when closed\n", whole);
  double most = 0;
  for (Index layer = 0; layer < config.layers; ++layer)
    for (Index head = 0; head < config.heads; ++head) {
      Close probe(config, layer, head);
      const double rise = loss(model, batches, &probe) - whole;
      fmt::print("{:5}  {:4}  {:+.4f}\n", layer, head, rise);
      most = std::max(most, rise);
    }
  return most > 0 ? 0 : 1;  // training gave some head work to do
}
