// Trains a small decoder for ten steps and proves the gradient of an op of its own, with nothing
// but the installed headers and library.
#include <headwise/headwise.hpp>

using namespace headwise;

/// x^3, element by element.
template <Real T>
Var<T> cube(const Var<T>& x) {
  const Tensor<T> in = x.value();
  Tensor<T> y = in;
  for (T& v : std::span(y.data(), in.values().size())) v = v * v * v;
  return record("cube", y, {x}, [in](const Tensor<T>& dy, Grads<T>& d) {
    Tensor<T> dx = dy;
    T* const to = dx.data();
    for (Index i = 0; i < dx.size(); ++i) to[i] *= 3 * in.data()[i] * in.data()[i];
    d.add(0, std::move(dx));
  });
}

int main(int argc, char** argv) {
  init(argc, argv);
  std::string text;
  for (int i = 0; i < 40; ++i) text += "the cat sat on the mat. ";
  const Tokenizer tokenizer = Tokenizer::learn(TokenizerKind::character, text);
  const ModelConfig config{
      .vocab = tokenizer.vocab(), .layers = 1, .heads = 2, .width = 16, .context = 16};
  const TextSource tokens(tokenizer.encode(text), config.context);
  Rng rng(1);
  Decoder<float> model(config, rng);
  Trainer<float> trainer(model, {.batch = 8, .steps = 10, .lr = 1e-2, .warmup = 2}, tokens, 1);
  const double first = trainer.step().loss;
  double last = first;
  while (!trainer.done()) last = trainer.step().loss;
  fmt::print("loss {:.3f} falls to {:.3f}\n", first, last);

  const GradReport report =
      gradcheck([](const auto& x) { return cube(x[0]); }, {normal_tensor<double>({2, 3}, 1, rng)});
  fmt::print("cube: worst {:.1e}, {}\n", report.worst, name_of(report.verdict));
  return last < 0.9 * first && report.verdict == Verdict::pass ? 0 : 1;
}
