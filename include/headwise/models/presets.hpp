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

/// Every preset: toy, nano, char, long; gpt2 (Radford et al. 2019, table 2, the smallest). Decoders
/// of the sizes of transformer-base (Vaswani et al. 2017, arXiv:1706.03762, table 3), bert-base and
/// bert-large (Devlin et al. 2019, arXiv:1810.04805, sec. 3). induction: two layers of attention
/// alone, which learn to continue what they have seen before (Olsson et al. 2022,
/// arXiv:2209.11895); untied, initialised by 1/sqrt(C).
const std::vector<Preset>& presets();
/// The preset of that name. Throws UsageError, beginning with the option, that lists the known
/// ones.
const Preset& preset(std::string_view option, std::string_view name);

/// Floating-point operations of one training step over `tokens` tokens in rows of T = c.context:
/// six a weight and token (Kaplan et al. 2020, arXiv:2001.08361, sec. 2.1: a multiply and an add,
/// forward and twice backward) and attention's two products, 12 L C T a token. With `causal`, only
/// the pairs that a causal mask shows are counted, 6 L C (T+1).
double training_flops(const ModelConfig& c, Index weights, Index tokens, bool causal);

/// Parameters of tables that are only looked up, never multiplied: positions and, untied, tokens.
Index looked_up(const ModelConfig& c);

}  // namespace headwise
