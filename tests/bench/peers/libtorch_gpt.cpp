// The training step of torch_gpt.py without Python, for the sizes at which the interpreter shows:
// one JSON line. Needs Debian's libtorch-dev; ../compare.sh builds and runs it.
//   g++ -O2 libtorch_gpt.cpp -o libtorch_gpt -I/usr/include/torch/csrc/api/include
//     -ltorch -ltorch_cpu -lc10
//   ./libtorch_gpt toy|nano|char [THREADS] [SECONDS]
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;
using torch::Tensor;

constexpr std::int64_t kVocab = 65, kTextTokens = 200'000;

struct Config {
  std::int64_t layers, heads, width, context, batch;
};

const std::map<std::string, Config> kConfigs = {
    {"toy", {2, 4, 64, 64, 16}}, {"nano", {4, 4, 128, 64, 12}}, {"char", {6, 6, 384, 256, 16}}};

struct BlockImpl : nn::Module {
  explicit BlockImpl(const Config& c)
      : heads(c.heads),
        norm1(register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({c.width})))),
        norm2(register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({c.width})))),
        qkv(register_module("qkv", nn::Linear(c.width, 3 * c.width))),
        out(register_module("out", nn::Linear(c.width, c.width))),
        up(register_module("up", nn::Linear(c.width, 4 * c.width))),
        down(register_module("down", nn::Linear(4 * c.width, c.width))) {}

  Tensor attention(const Tensor& x, const Tensor& future) {
    const auto batch = x.size(0), time = x.size(1), width = x.size(2);
    const auto parts = qkv(x).split(width, 2);
    const auto of_heads = [&](const Tensor& part) {
      return part.view({batch, time, heads, width / heads}).transpose(1, 2);
    };
    const Tensor q = of_heads(parts[0]), k = of_heads(parts[1]), v = of_heads(parts[2]);
    const double root = std::sqrt(static_cast<double>(width / heads));
    const Tensor scores = q.matmul(k.transpose(2, 3)) / root;
    const Tensor pattern = scores.masked_fill(future, -INFINITY).softmax(-1);
    return out(pattern.matmul(v).transpose(1, 2).reshape({batch, time, width}));
  }

  Tensor forward(Tensor x, const Tensor& future) {
    x = x + attention(norm1(x), future);
    return x + down(torch::gelu(up(norm2(x))));
  }

  std::int64_t heads;
  nn::LayerNorm norm1, norm2;
  nn::Linear qkv, out, up, down;
};
TORCH_MODULE(Block);

struct DecoderImpl : nn::Module {
  explicit DecoderImpl(const Config& c)
      : tokens(register_module("tokens", nn::Embedding(kVocab, c.width))),
        positions(register_module("positions", nn::Embedding(c.context, c.width))),
        norm(register_module("norm", nn::LayerNorm(nn::LayerNormOptions({c.width})))),
        future(torch::ones({c.context, c.context}, torch::kBool).triu(1)) {
    for (std::int64_t i = 0; i < c.layers; ++i)
      blocks.push_back(register_module("block" + std::to_string(i), Block(c)));
    for (Tensor& p : parameters())
      if (p.dim() > 1) nn::init::normal_(p, 0, 0.02);
  }

  Tensor forward(const Tensor& ids) {
    Tensor x = tokens(ids) + positions->weight;
    for (Block& block : blocks) x = block(x, future);
    return F::linear(norm(x), tokens->weight);  // tied
  }

  nn::Embedding tokens, positions;
  nn::LayerNorm norm;
  std::vector<Block> blocks;
  Tensor future;
};
TORCH_MODULE(Decoder);

/// Seconds of each run of `work`, shortest first.
template <class Work>
std::vector<double> measure(double seconds, Work work) {
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  for (int i = 0; i < 3; ++i) work();
  std::vector<double> times;
  const auto end = Clock::now() + Seconds(seconds);
  while (Clock::now() < end || times.size() < 3) {
    const auto start = Clock::now();
    work();
    times.push_back(Seconds(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "toy";
  const int threads = argc > 2 ? std::stoi(argv[2]) : 2;
  const double seconds = argc > 3 ? std::stod(argv[3]) : 10;
  if (kConfigs.count(name) == 0) {
    std::fprintf(stderr, "'%s' is none of toy, nano, char\n", name.c_str());
    return 2;
  }
  const Config& c = kConfigs.at(name);
  at::set_num_threads(threads);
  torch::manual_seed(0);

  Decoder model(c);
  const Tensor text = torch::randint(kVocab, {kTextTokens}, torch::kLong);
  torch::optim::AdamW adam(model->parameters(), 3e-4);
  const auto step = [&] {
    const Tensor starts = torch::randint(kTextTokens - c.context - 1, {c.batch}, torch::kLong);
    std::vector<Tensor> inputs, targets;
    for (std::int64_t i = 0; i < c.batch; ++i) {
      const auto s = starts[i].item<std::int64_t>();
      inputs.push_back(text.slice(0, s, s + c.context));
      targets.push_back(text.slice(0, s + 1, s + 1 + c.context));
    }
    const Tensor logits = model(torch::stack(inputs));
    const Tensor loss = F::cross_entropy(logits.view({-1, kVocab}), torch::stack(targets).view(-1));
    adam.zero_grad();
    loss.backward();
    nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    adam.step();
    return loss.item<float>();
  };

  const std::vector<double> times = measure(seconds, step);
  const double median = times[times.size() / 2];
  std::printf(
      "{\"engine\": \"libtorch %s\", \"mode\": \"train\", \"config\": \"%s\", \"threads\": %d, "
      "\"ms\": %.3f, \"min_ms\": %.3f, \"tokens_per_second\": %.1f}\n",
      TORCH_VERSION, name.c_str(), threads, 1e3 * median, 1e3 * times[0],
      static_cast<double>(c.batch * c.context) / median);
}
