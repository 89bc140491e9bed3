// Which parts of the model a logit comes from.
#pragma once

#include <string>
#include <vector>

#include "headwise/models/decoder.hpp"

namespace headwise::study {

/// Logits of one target a position, as sums of what each component adds.
struct Attribution {
  /// "embed" and "position"; of each layer its heads "1.0", ..., "attn bias 1" (of w_o) and "mlp
  /// 1"; last "norm bias". Those that the model does not have are left out. The bias of the values
  /// is in the heads, the MLP's own in the MLP.
  std::vector<std::string> components;
  Tensor<double> values;     ///< (components,B,T)
  Tensor<double> logits;     ///< (B,T), the model's
  Tensor<double> remainder;  ///< (B,T), logits less the sum of the components: rounding alone
};

/// Direct logit attribution (Elhage et al. 2021, "A mathematical framework for transformer
/// circuits", "Residual stream"; Wang et al. 2022, arXiv:2211.00593, sec. 3.1): the stream before
/// the last norm is a sum of components, and the norm, its standard deviation being held at what it
/// is, is affine, so a component r adds <W_U[target], gain * (r - mean r)> / sigma to the logit.
/// The contributions to a difference of two logits are the differences of theirs. ids (B,T),
/// targets (B,T): tokens. Summed in double. Throws ShapeError when they do not fit or a target is
/// no token, and as the model does.
template <Real T>
Attribution attribute_logits(const Decoder<T>& model, const Ids& ids, const Ids& targets);

}  // namespace headwise::study
