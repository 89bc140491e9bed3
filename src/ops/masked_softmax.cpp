#include <algorithm>
#include <cmath>
#include <limits>

#include "headwise/core/parallel.hpp"
#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "kernels/kernels.hpp"
#include "ops/mask_view.hpp"

namespace headwise {
namespace {

/// Scores of any rank as (B,H,T,S).
MaskedSizes sizes_of(const Shape& scores) {
  const Index rank = scores.rank();
  require(rank >= 2, "masked_softmax: scores {} are not (..., T, S)", scores);
  MaskedSizes n{
      .batch = rank == 2 ? 1 : scores[0], .heads = 1, .queries = scores[-2], .keys = scores[-1]};
  for (Index axis = 1; axis < rank - 2; ++axis) n.heads *= scores[axis];
  return n;
}

/// Calls f(where a row begins, what its query sees, its bias) for all rows, in parallel.
template <class F>
void for_each_row(const Mask& mask, const MaskedSizes& n, F f) {
  const std::vector<std::vector<kernels::SeenKeys>> seen = seen_keys(mask, n);
  const kernels::Bias bias = bias_of(mask, n);
  parallel_rows(n.batch * n.heads * n.queries, n.keys, [&](Index begin, Index end) {
    for (Index row = begin; row < end; ++row) {
      const Index t = row % n.queries, h = row / n.queries % n.heads, b = row / n.queries / n.heads;
      const auto& of_sequence = seen[seen.size() == 1 ? 0 : static_cast<std::size_t>(b)];
      f(row * n.keys, of_sequence[static_cast<std::size_t>(t)], bias.row(b, h, t, n.keys));
    }
  });
}

/// Copies what a query sees of its row, and zeroes the rest. Returns where the copy begins.
template <Real T>
T* copy_seen(const kernels::SeenKeys& seen, Index keys, const T* from, T* to) {
  std::fill(to, to + seen.first, T(0));
  std::copy(from + seen.first, from + seen.end, to + seen.first);
  std::fill(to + seen.end, to + keys, T(0));
  return to + seen.first;
}

}  // namespace

template <Real T>
Var<T> masked_softmax(const Var<T>& scores, const Mask& mask) {
  const MaskedSizes n = sizes_of(scores.shape());
  check_mask("masked_softmax", mask, n);
  Tensor<T> y = Tensor<T>::uninitialized(scores.shape());
  const T* in = scores.value().data();
  T* out = y.data();
  for_each_row(mask, n, [&](Index at, const kernels::SeenKeys& seen, const double* bias) {
    T* row = copy_seen(seen, n.keys, in + at, out + at);
    kernels::mask_row(seen, bias, row);
    if (std::isnan(kernels::softmax(row, seen.count()).max)) kernels::strike(seen, bias, row);
  });

  return record("masked_softmax", y, {scores}, [y, mask, n](const Tensor<T>& dy, Grads<T>& d) {
    if (!d.wants(0)) return;
    Tensor<T> dx = Tensor<T>::uninitialized(y.shape());
    const T *p = y.data(), *up = dy.data();
    T* to = dx.data();
    for_each_row(mask, n, [&](Index at, const kernels::SeenKeys& seen, const double* bias) {
      T* row = copy_seen(seen, n.keys, up + at, to + at);
      kernels::strike(seen, bias, row);  // 0 times an upstream NaN is not 0
      kernels::softmax_backward(p + at + seen.first, row, seen.count());
      kernels::strike(seen, bias, row);  // the row's sum may be NaN
    });
    d.add(0, std::move(dx));
  });
}

template Var<float> masked_softmax(const Var<float>&, const Mask&);
template Var<double> masked_softmax(const Var<double>&, const Mask&);

OpSpec specs::masked_softmax() {
  const auto with = [](const Mask& mask) {
    return [=](const auto& x) { return headwise::masked_softmax(x[0], mask); };
  };
  const std::vector<Shape> matrix = {{4, 5}}, batch = {{3, 4, 5}}, heads = {{3, 2, 4, 5}};
  const Mask holes = allow(4, 5, [](Index t, Index s) { return t != 2 && (t + s) % 3 != 0; });
  const Mask padding = keys_below({5, 2, 0});
  Tensor<double> table = Tensor<double>::zeros({2, 4, 5});
  double* out = table.data();
  for (Index i = 0; i < table.size(); ++i)
    out[i] = i % 7 == 3 ? -std::numeric_limits<double>::infinity() : -0.1 * static_cast<double>(i);
  return {"masked_softmax",
          {op_case("everything", matrix, any, with(everything())),
           op_case("causal", matrix, any, with(causal())),
           op_case("causal, offset 2", matrix, any, with(causal(2))),
           op_case("allow, one row empty", batch, any, with(holes)),
           op_case("lengths", batch, any, with(padding)),
           op_case("lengths, with heads", heads, any, with(padding)),
           op_case("bias of each head", heads, any, with(bias(table))),
           op_case("all at once", heads, any,
                   with(causal(2) & padding & holes & bias(table) & causal()))}};
}

}  // namespace headwise
