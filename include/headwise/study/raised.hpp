// Whether a head raises the logit of the token it attends to.
#pragma once

#include <span>
#include <vector>

#include "headwise/models/decoder.hpp"

namespace headwise::study {

/// What one head writes at each query of one sequence, seen from the logits of the sequence's own
/// tokens.
struct Raised {
  std::vector<Id> tokens;       ///< the n distinct tokens of the sequence, in rising order
  Tensor<double> shares;        ///< (T,n), rows that add up to 1; 0 where no token is raised
  std::vector<Index> attended;  ///< of each query: which of the tokens it attends to most
};

/// Copying by behaviour, for every head of a layer (Olsson et al. 2022, "In-context learning and
/// induction heads", appendix on head evaluators): the head's result alone, W_O z, goes through the
/// last norm and the output weights to logits; what of each lies above the mean over the vocabulary
/// is the amount by which it is raised, and a token's share is its amount by the sum over the
/// tokens of the sequence. [head][sequence].
/// The copying score of a query is shares(attended), in [0,1]. A head that raises the sequence's
/// tokens without regard to which one it attends to has 1/n on average over the tokens. A query
/// that raises none of them has no score.
/// The norm's gain and its taking off the mean are folded in; its scale is that of the position,
/// which shares do not see; biases, w_o's and the norm's, are not the head's and are left out. Of
/// two keys attended to alike the earlier one counts.
/// ids (B,T), pattern (B,H,T,T) and z (B,T,C) of that layer's attention, as its taps show them.
/// `lengths` (B): how many tokens of each sequence count, and then T is that one's; what stands
/// behind is padding. Empty: all. Throws ShapeError when they do not fit or there is no such layer.
template <Real T>
std::vector<std::vector<Raised>> raised_tokens(const Decoder<T>& model, Index layer, const Ids& ids,
                                               const Tensor<T>& pattern, const Tensor<T>& z,
                                               std::span<const Index> lengths = {});

}  // namespace headwise::study
