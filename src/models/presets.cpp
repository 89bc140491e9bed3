#include "headwise/models/presets.hpp"

#include <fmt/format.h>

#include <cmath>

namespace headwise {

const std::vector<Preset>& presets() {
  const auto model = [](Index vocab, Index layers, Index heads, Index width, Index context) {
    ModelConfig c;
    c.vocab = vocab;
    c.layers = layers;
    c.heads = heads;
    c.width = width;
    c.context = context;
    return c;
  };
  const auto induction = [&] {
    ModelConfig c = model(33, 2, 4, 64, 64);
    c.attention_only = true;
    c.tie = false;
    c.init_std = 1 / std::sqrt(static_cast<double>(c.width));
    return c;
  };
  static const std::vector<Preset> all = {{"toy", model(65, 2, 4, 64, 64), 16},
                                          {"nano", model(65, 4, 4, 128, 64), 12},
                                          {"char", model(65, 6, 6, 384, 256), 16},
                                          {"long", model(256, 2, 8, 512, 1024), 2},
                                          {"gpt2", model(50257, 12, 12, 768, 1024), 4},
                                          {"transformer-base", model(37000, 6, 8, 512, 512), 2},
                                          {"bert-base", model(30522, 12, 12, 768, 512), 1},
                                          {"bert-large", model(30522, 24, 16, 1024, 512), 1},
                                          {"induction", induction(), 16}};
  return all;
}

const Preset& preset(std::string_view option, std::string_view name) {
  std::vector<std::string_view> known;
  for (const Preset& p : presets()) {
    if (p.name == name) return p;
    known.push_back(p.name);
  }
  throw UsageError(fmt::format("{}: '{}' is none of {}", option, name, fmt::join(known, ", ")));
}

double training_flops(const ModelConfig& c, Index weights, Index tokens, bool causal) {
  const auto number = [](Index n) { return static_cast<double>(n); };
  const double pairs = causal ? (number(c.context) + 1) / 2 : number(c.context);
  const double attention = 12 * number(c.layers) * number(c.width) * pairs;
  return number(tokens) * (6 * number(weights) + attention);
}

Index looked_up(const ModelConfig& c) { return (c.context + (c.tie ? 0 : c.vocab)) * c.width; }

}  // namespace headwise
