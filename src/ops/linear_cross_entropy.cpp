#include <algorithm>

#include "headwise/core/gemm.hpp"
#include "headwise/core/parallel.hpp"
#include "headwise/ops/op_table.hpp"
#include "ops/cross_entropy.hpp"
#include "ops/linear.hpp"

namespace headwise {
namespace {

/// Rows of logits held at a time: enough for fat products, and dw is not added to too often.
constexpr Index kRows = 256;

/// x *= factor, unless that is 1.
template <Real T>
void scale(Tensor<T>& x, T factor) {
  if (factor == 1) return;
  T* out = x.data();
  parallel_rows(x.size(), 1, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) out[i] *= factor;
  });
}

}  // namespace

template <Real T>
Var<T> linear_cross_entropy(const Var<T>& x, const Var<T>& w, const Ids& labels) {
  const Shape &sx = x.shape(), &sw = w.shape();
  require(
      has_a_row_each(sx, labels) && sw.rank() == 2 && sx.last() == sw[1],
      "linear_cross_entropy: input {}, weight {} and labels {} do not fit (..., C), (V,C), (...)",
      sx, sw, labels.shape);
  const Index rows = sx.rows(), v = sw[0], count = counted(labels);
  require_labels("linear_cross_entropy", labels, v);

  Tensor<T> dx, dw;
  if (x.tracked()) dx = Tensor<T>::uninitialized(sx);
  if (w.tracked()) dw = rows == 0 ? Tensor<T>::zeros(sw) : Tensor<T>::uninitialized(sw);
  Tensor<T> block = Tensor<T>::uninitialized({std::min(rows, kRows), v});
  T* const z = block.data();
  const T share = count == 0 ? T(0) : T(1) / static_cast<T>(count);
  std::vector<double> loss(static_cast<std::size_t>(rows));
  for (Index from = 0; from < rows; from += kRows) {
    const Index n = std::min(kRows, rows - from);
    const Mat<T> dz{z, n, v, v};
    const Mat<const T> some = as_rows(x.value()).block(from, 0, n, sx.last());
    times_weight<T>(some, w.value(), {}, dz);
    parallel_rows(n, v, [&](Index begin, Index end) {
      for (Index r = begin; r < end; ++r) {
        const auto i = static_cast<std::size_t>(from + r);
        double lse = 0;
        loss[i] = row_loss(z + r * v, v, labels.values[i], lse);
        if (x.tracked() || w.tracked())
          row_gradient(z + r * v, v, labels.values[i], lse, share, z + r * v);
      }
    });
    Products<T> work;
    if (w.tracked()) work.add(1, Mat<const T>(dz).t(), some, from == 0 ? T(0) : T(1), as_rows(dw));
    if (x.tracked())
      work.add(1, dz, as_rows(w.value()), 0, as_rows(dx).block(from, 0, n, sx.last()));
    work.run();
  }
  return record("linear_cross_entropy", mean_loss<T>(loss, count), {x, w},
                [dx = std::move(dx), dw = std::move(dw)](const Tensor<T>& dy, Grads<T>& d) mutable {
                  for (auto [i, gradient] : {std::pair<Index, Tensor<T>*>{0, &dx}, {1, &dw}}) {
                    if (!d.wants(i)) continue;
                    scale(*gradient, dy.item());
                    d.add(i, std::move(*gradient));
                  }
                },
                {.forward = 3 * product_flops(rows, v, sx.last())});
}

template Var<float> linear_cross_entropy(const Var<float>&, const Var<float>&, const Ids&);
template Var<double> linear_cross_entropy(const Var<double>&, const Var<double>&, const Ids&);

OpSpec specs::linear_cross_entropy() {
  const auto call = [](auto& x) {
    return headwise::linear_cross_entropy(x[0], x[1], Ids({2, 3}, {0, 3, kIgnore, 1, 1, 2}));
  };
  const auto many = [](auto& x) {
    std::vector<Id> labels(300);
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<Id>(i % 3);
    return headwise::linear_cross_entropy(x[0], x[1], Ids({300}, std::move(labels)));
  };
  return {"linear_cross_entropy",
          {op_case("one label ignored", {{2, 3, 4}, {5, 4}}, any, call),
           op_case("two blocks of rows", {{300, 2}, {3, 2}}, any, many)}};
}

}  // namespace headwise
