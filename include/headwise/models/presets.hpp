// Models of known sizes, by name.
#pragma once

#include <string_view>
#include <vector>

#include "headwise/models/decoder.hpp"

namespace headwise {

/// A model of a known size, and the batch that speed is measured with.
struct Preset {
  std::string_view name;
  ModelConfig model;  ///< its vocab is what the measurement uses
  Index batch = 1;    ///< sequences
};

/// Every preset: toy, nano, char, long, gpt2 (Radford et al. 2019, table 2, the smallest).
const std::vector<Preset>& presets();

/// Floating-point operations of one training step over `tokens` tokens in rows of T = c.context:
/// six a weight and token (Kaplan et al. 2020, arXiv:2001.08361, sec. 2.1: a multiply and an add,
/// forward and twice backward) and attention's two products, 12 L C T a token. With `causal`, only
/// the pairs that a causal mask shows are counted, 6 L C (T+1).
double training_flops(const ModelConfig& c, Index weights, Index tokens, bool causal);

/// Parameters of tables that are only looked up, never multiplied: positions and, untied, tokens.
Index looked_up(const ModelConfig& c);

}  // namespace headwise
