// What each head does and what it is worth: trains a small decoder for a few seconds, names its
// heads' roles, then closes them one by one and prints how far the validation loss rises. Build and
// run:
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
  [[nodiscard]] std::vector<std::string> names() const override { return {name}; }
  Var<float> at(std::string_view, Var<float> z) override { return z * Var<float>(open); }
};

/// Mean loss over the batches; `probe` may be null.
double loss(const Decoder<float>& model, const std::vector<Batch>& batches, Probe<float>* probe) {
  double total = 0;
  for (const Batch& b : batches) total += model.loss({.probe = probe}, b.inputs, b.targets).item();
  return total / static_cast<double>(batches.size());
}

int main(int argc, char** argv) {
  init(argc, argv);
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
  // headwise study does all of this and more; each part can be called alone.
  const study::Sets sets{.data = study::data_sequences(text, 20, 1)};
  const std::vector<study::HeadStudy> heads = study::study_heads(model, sets, 1);
  fmt::print("validation loss {:.4f}\n\nhead  rise when closed  previous token  role\n", whole);
  double most = 0;
  for (const study::HeadStudy& head : heads) {
    Close probe(config, head.id.layer, head.id.head);
    const double rise = loss(model, batches, &probe) - whole;
    fmt::print("{:4}  {:+16.4f}  {:14.3f}  {}\n", name_of(head.id), rise,
               head.score(study::Score::previous_token)->value, head.role ? head.label : "-");
    most = std::max(most, rise);
  }
  return most > 0 ? 0 : 1;  // training gave some head work to do
}
