#include "headwise/models/decoder_cases.hpp"

#include "headwise/models/decoder.hpp"
#include "headwise/nn/gradcheck.hpp"

namespace headwise {
namespace {

/// Large enough that gradients stand far above what rounding hides.
constexpr double kInitStd = 0.5;
struct Setting {
  std::string label;
  ModelConfig config;
  bool ignored = false;  ///< some labels do not count
  Index sample = 0;      ///< elements of each parameter; 0: all
};

/// Every option, once each way.
std::vector<Setting> settings() {
  const ModelConfig small{.vocab = 5, .layers = 2, .heads = 2, .width = 4, .context = 4};
  std::vector<Setting> all;
  const auto add = [&](std::string label, auto change) {
    change(all.emplace_back(Setting{std::move(label), small}));
  };
  const auto large = [](Setting& s) {
    s.config.vocab = 4096;  // from here on loss() takes linear_cross_entropy()
    s.config.layers = 1;
    s.sample = 16;
  };
  add("tied", [](Setting&) {});
  add("untied", [](Setting& s) { s.config.tie = false; });
  add("tanh", [](Setting& s) { s.config.gelu = Gelu::tanh; });
  add("no bias", [](Setting& s) { s.config.bias = false; });
  add("dropout", [](Setting& s) { s.config.dropout = 0.2; });
  add("attention only", [](Setting& s) { s.config.attention_only = true; });
  add("attention only, untied, no bias, dropout", [](Setting& s) {
    s.config.attention_only = true, s.config.tie = s.config.bias = false, s.config.dropout = 0.2;
  });
  add("ignored labels", [](Setting& s) { s.ignored = true; });
  add("large vocabulary", large);
  add("large vocabulary, untied, ignored labels",
      [&](Setting& s) { large(s), s.config.tie = false, s.ignored = true; });
  return all;
}

/// Uniform ids; every third a label that does not count, if asked for.
Ids random_ids(const Shape& shape, Index vocab, bool ignored, Rng& rng) {
  std::vector<Id> values;
  for (Index i = 0; i < shape.size(); ++i)
    values.push_back(ignored && i % 3 == 1 ? kIgnore : static_cast<Id>(rng.below(vocab)));
  return {shape, std::move(values)};
}

template <Real T>
GradCase decoder_case(const Setting& s, std::uint64_t seed) {
  Rng rng(seed);
  ModelConfig config = s.config;
  config.init_std = kInitStd;
  Decoder<T> model(config, rng);
  roughen(model, kInitStd, seed + 1);
  const Shape shape{2, config.context};
  const Ids ids = random_ids(shape, config.vocab, false, rng);
  const Ids labels = random_ids(shape, config.vocab, s.ignored, rng);
  return {"Decoder", s.label, [model, ids, labels, sample = s.sample](GradOptions options) mutable {
            options.heads = model.config.heads;
            if (options.sample == 0) options.sample = sample;
            const auto loss = [&](const Ctx<T>& ctx) { return model.loss(ctx, ids, labels); };
            return gradcheck_module<T>(model, loss, {}, std::move(options));
          }};
}

}  // namespace

template <Real T>
std::vector<GradCase> decoder_cases(std::uint64_t seed) {
  std::vector<GradCase> all;
  for (const Setting& s : settings()) all.push_back(decoder_case<T>(s, seed));
  return all;
}

template std::vector<GradCase> decoder_cases<float>(std::uint64_t);
template std::vector<GradCase> decoder_cases<double>(std::uint64_t);

}  // namespace headwise
