// The differentiable functions. Each is one file in src/ops with its backward and its proof.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "headwise/autograd/tape.hpp"
#include "headwise/core/ids.hpp"
#include "headwise/core/random.hpp"
#include "headwise/ops/mask.hpp"

namespace headwise {

/// a + b, a - b and a b, element by element; sizes of 1 and missing leading axes are repeated, as
/// NumPy does. Throws ShapeError when the shapes do not broadcast.
template <Real T>
Var<T> add(const Var<T>& a, const Var<T>& b);
template <Real T>
Var<T> sub(const Var<T>& a, const Var<T>& b);
template <Real T>
Var<T> mul(const Var<T>& a, const Var<T>& b);

template <Real T>
Var<T> operator+(const Var<T>& a, const Var<T>& b) {
  return add(a, b);
}
template <Real T>
Var<T> operator-(const Var<T>& a, const Var<T>& b) {
  return sub(a, b);
}
template <Real T>
Var<T> operator*(const Var<T>& a, const Var<T>& b) {
  return mul(a, b);
}

/// The sum and the mean over the axes named, or over all when none is; summed in double. Negative
/// axes count from the end. With `keep` the axes stay in the result's shape, of size 1. Throws
/// ShapeError for an axis that is not there or named twice, and for a mean of no elements.
template <Real T>
Var<T> sum(const Var<T>& x, const std::vector<Index>& axes = {}, bool keep = false);
template <Real T>
Var<T> mean(const Var<T>& x, const std::vector<Index>& axes = {}, bool keep = false);

/// a b, matrix by matrix.   a (..., M,K), b (..., K,N), result (..., M,N); the leading axes
/// broadcast as those of add() do. Throws ShapeError when they or K do not fit.
template <Real T>
Var<T> matmul(const Var<T>& a, const Var<T>& b);

/// Rows up to which linear() reads its weight once for all of them, and gives each the bits that it
/// has alone: a sample does not change with those decoded beside it.
inline constexpr Index kFewRows = 8;

/// y = x w^T + b.   x (..., C), w (O,C), b (O) or absent, result (..., O).
/// Throws ShapeError when C or O disagree.
template <Real T>
Var<T> linear(const Var<T>& x, const Var<T>& w, const Var<T>& b = {});

/// Rows of a table.   table (V,C), ids (...), result (..., C).
/// Throws ShapeError for an id that is not a row of the table, and for ids that do not fit their
/// shape.
template <Real T>
Var<T> embedding(const Var<T>& table, const Ids& ids);

/// What layer_norm() adds to a variance.
inline constexpr double kNormEps = 1e-5;

/// y = (x - mean(x)) / sqrt(var(x) + eps) * gain + bias over the last axis, var without Bessel's
/// correction (Ba et al. 2016, arXiv:1607.06450, sec. 3).   x (..., C); gain (C), bias (C), each
/// of which may be absent. Throws ShapeError when C disagrees, UsageError unless eps is a finite
/// number >= 0.
template <Real T>
Var<T> layer_norm(const Var<T>& x, const Var<T>& gain, const Var<T>& bias, double eps = kNormEps);

/// A residual stream after an addition, and its norm.
template <Real T>
struct SumAndNorm {
  Var<T> sum, norm;
};
/// {a + b, layer_norm(a + b, gain, bias)} in one pass over the rows, with the same bits; recorded
/// as the two ops it is.   a, b (..., C). Throws ShapeError when they differ, and as layer_norm()
/// does.
template <Real T>
SumAndNorm<T> add_layer_norm(const Var<T>& a, const Var<T>& b, const Var<T>& gain,
                             const Var<T>& bias, double eps = kNormEps);

/// Which formula gelu() uses.
enum class Gelu { exact, tanh };
constexpr std::array<std::string_view, 2> names_of(Gelu) { return {"exact", "tanh"}; }

/// x Phi(x), Phi the standard normal distribution, or the tanh approximation of it
/// (Hendrycks and Gimpel 2016, arXiv:1606.08415, sec. 2).
template <Real T>
Var<T> gelu(const Var<T>& x, Gelu kind = Gelu::exact);

/// linear(gelu(x), w, b), to the same bits, without gelu(x) staying in memory: y = gelu(x) w^T + b.
/// x (..., C), w (O,C), b (O) or absent, result (..., O). Throws ShapeError when C or O disagree.
template <Real T>
Var<T> gelu_linear(const Var<T>& x, const Var<T>& w, const Var<T>& b, Gelu kind = Gelu::exact);

/// Each element zero with probability `rate`, else x / (1 - rate) (Srivastava et al. 2014, JMLR 15,
/// sec. 10). x itself when rng is null or rate is 0. Moves rng past the draws it used.
/// Throws UsageError unless 0 <= rate < 1.
template <Real T>
Var<T> dropout(const Var<T>& x, double rate, Rng* rng);

/// Sees the pattern of attention(), between softmax and dropout.
template <Real T>
struct PatternTap {
  virtual ~PatternTap() = default;
  /// pattern (B,H,T,S), rows that sum to 1 (or 0, where a query sees nothing). Returns whether it
  /// is to be a constant that sends no gradient to q and k; a pattern that was written always is.
  virtual bool see(Tensor<T>& pattern) = 0;
};

/// How queries may look at keys; what is null or zero is off.
template <Real T>
struct Attend {
  Index heads = 1;     ///< H; q's width is a multiple of it
  Index kv_heads = 0;  ///< a divisor of heads; 0: as many as heads
  T scale = 0;         ///< finite; 0: 1/sqrt(D)
  /// Which keys are seen, and biases on the scores: see mask.hpp. By default causal(), for as many
  /// queries as keys only.
  std::optional<Mask> mask{};
  double dropout = 0;            ///< of the pattern, see dropout()
  Rng* random = nullptr;         ///< null: no dropout
  PatternTap<T>* tap = nullptr;  ///< sees, and may replace, the (B,H,T,S) pattern
};

/// Multi-head attention (Vaswani et al. 2017, arXiv:1706.03762, sec. 3.2), head by head
///   softmax(scale q k^T + bias, masked) v.
/// q (B,T,C), k (B,S,C'), v (B,S,C''); head h owns the columns [hD, (h+1)D) of each; result
/// (B,T,C''/kv_heads*H). By default a query sees the keys up to its own position. A query that sees
/// nothing gives zeros and zero gradients. What a query does not see has no effect on it, whatever
/// is there, a NaN or an infinity included, nor has that query on the gradients there; what the
/// pattern that a tap has replaced gives no weight is not seen. With kv_heads < heads, neighbouring
/// heads share keys and values (Ainslie et al. 2023, arXiv:2305.13245, sec. 2.2). The (T,S) pattern
/// is never held whole unless there is a tap, and keys that no query of a block sees are not read.
/// Throws ShapeError unless the widths are multiples of the head counts and the shapes and the mask
/// fit, and without a mask where T is not S; UsageError for a scale that is not finite.
template <Real T>
Var<T> attention(const Var<T>& q, const Var<T>& k, const Var<T>& v, const Attend<T>& how);

/// softmax(scores + bias) over the keys that the mask lets a query see, exactly 0 at the others;
/// what stands there, even a NaN, reaches neither result nor gradient. A query that sees nothing
/// gives zeros and zero gradients. scores (..., T, S), result the same. The first of three or more
/// axes is the batch, those between it and T are the heads: (B,T,S), (B,H,T,S).
/// Throws ShapeError when the scores have fewer than two axes or the mask does not fit them.
template <Real T>
Var<T> masked_softmax(const Var<T>& scores, const Mask& mask);

/// How many labels are not kIgnore.
Index counted(const Ids& labels);

/// Mean over the counted labels of -log softmax(logits)[label]: takes logits, not probabilities.
/// logits (..., V), labels (...), result a scalar; positions labelled kIgnore do not count, and
/// with none to count the loss is 0 and so are the gradients. Summed in double.
/// Throws ShapeError for any other label outside [0, V), and for labels that do not fit their
/// shape.
template <Real T>
Var<T> cross_entropy(const Var<T>& logits, const Ids& labels);

/// cross_entropy(linear(x, w), labels) without ever holding more than 256 rows of logits or of
/// their gradients: for large vocabularies. The forward of a tracked x or w computes their
/// gradients too. x (..., C), w (V,C), labels (...), result a scalar. Throws as the two do.
template <Real T>
Var<T> linear_cross_entropy(const Var<T>& x, const Var<T>& w, const Ids& labels);

}  // namespace headwise

#include "headwise/ops/primitives.hpp"
