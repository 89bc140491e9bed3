// How much the loss depends on each head, to first order: every head from one backward pass.
#pragma once

#include <vector>

#include "headwise/data/text.hpp"
#include "headwise/models/decoder.hpp"

namespace headwise::study {

/// I_h = E_x |d L(x) / d xi_h| for every head, in the order of heads_of() (Michel et al. 2019,
/// arXiv:1905.10650, eq. 2): x a sequence, L(x) its own mean loss in nats a token, xi_h = 1 a gate
/// that multiplies the head's z at all positions of x. By the chain rule it is the mean of
/// |sum_td z_td dL/dz_td|. Sequences without a target do not count.
/// Throws ShapeError for targets of another shape than the inputs, and when no position counts.
template <Real T>
std::vector<double> importance(const Decoder<T>& model, const std::vector<Batch>& batches);

/// Each layer's importances divided by their Euclidean norm, which makes heads of different layers
/// comparable (ibid.); a layer of zeros stays as it is. `importances` in the order of heads_of().
std::vector<double> normalized_by_layer(std::vector<double> importances, const ModelConfig& config);

}  // namespace headwise::study
