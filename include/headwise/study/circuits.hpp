// What a head copies and matches, read from the weights alone.
#pragma once

#include <complex>
#include <span>
#include <vector>

#include "headwise/study/head.hpp"

namespace headwise::study {

/// The sum of eigenvalues by the sum of their absolute values: from -1 to 1, the latter when every
/// one is positive (Elhage et al. 2021, "A mathematical framework for transformer circuits",
/// "Detecting copying heads"). 0 when all are 0, NaN when one is.
double positivity(std::span<const std::complex<double>> eigenvalues);

/// Eigenvalues of a head's full circuits (V,V), those that are always 0 left out: D of each.
///   ov: W_U W_O W_V W_E, what attending to a token (column) does to the logits (rows);
///   qk: W_E^T W_Q^T W_K W_E, how much a token as query (row) attends to one as key (column).
/// The norms on the way are folded in, gain and taking off the mean alike, ln1 in W_Q, W_K and W_V
/// and the last norm in W_U; their scale is that of a position and is left out, as are biases and
/// whatever layers are between. positivity(ov) near 1 is what a head that copies gives, but does
/// not prove that it copies; that of qk is near 1 when tokens attend to themselves.
struct Circuits {
  HeadId head;
  std::vector<std::complex<double>> ov, qk;
};

/// Those of every head, layer by layer. W_U W_O W_V W_E has the eigenvalues of the (D,D) product
/// W_V W_E W_U W_O, so nothing larger than (C,C) is formed.
template <Real T>
std::vector<Circuits> circuits(const Decoder<T>& model);

/// Shares of tokens whose own logit is the largest, and among the five largest, of their column of
/// a head's full OV circuit; of two equal logits that of the lower id counts as the larger.
struct TopCopying {
  HeadId head;
  double top1 = 0, top5 = 0;
};

/// Those of every head, layer by layer, for an embedding (V,C): model.tok.weight.value, or
/// effective_embedding(). Norms as in Circuits. At most `most` tokens are looked at, evenly spread
/// over the vocabulary; 0 means all. The work is 2 V most C a layer and the memory two embeddings
/// in double: all 50257 tokens of gpt2 take some minutes on two cores, 1000 of them a few seconds.
/// Throws ShapeError when the embedding is not (V,C), UsageError for a negative `most`.
template <Real T>
std::vector<TopCopying> top_copying(const Decoder<T>& model, const Tensor<T>& embedding,
                                    Index most = 0);

/// What the heads after the first block see of a token, whatever its place and its neighbours:
/// W_E + MLP_0(ln2(W_E)), (V,C). Throws UsageError for a model without an MLP.
template <Real T>
Tensor<T> effective_embedding(const Decoder<T>& model);

}  // namespace headwise::study
