#include <algorithm>
#include <array>

#include "headwise/core/gemm.hpp"
#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/gelu.hpp"
#include "ops/linear.hpp"

namespace headwise {
namespace {

/// Elements up to which gelu(x) and its derivative are kept for the backward; more are computed
/// again, with the same bits. Measured: twice the memory of x, for 1 % of a small model's step.
constexpr Index kSavedElements = 1 << 18;

template <Real T>
struct Hidden {
  Tensor<T> y, slope;
};

template <Real T>
Hidden<T> hidden(const Tensor<T>& x, Gelu kind, bool with_slope) {
  Hidden<T> h{Tensor<T>::uninitialized(x.shape()), {}};
  if (with_slope) h.slope = Tensor<T>::uninitialized(x.shape());
  gelu_of(kind, x, h.y, h.slope);
  return h;
}

/// tile *= gelu'(x) for a tile of x's shape that starts at (i, j), a piece at a time.
template <Real T>
void times_slope(const Tensor<T>& x, Gelu kind, Index i, Index j, Mat<T> tile) {
  constexpr Index kPiece = 256;
  std::array<T, kPiece> y, slope;
  const Index c = x.shape().last();
  for (Index r = 0; r < tile.rows; ++r)
    for (Index at = 0; at < tile.cols; at += kPiece) {
      const Index n = std::min(kPiece, tile.cols - at);
      T* row = tile.data + r * tile.ld + at;
      gelu_kernel<T>(kind)(x.data() + (i + r) * c + j + at, y.data(), slope.data(), n);
      kernels::multiply(row, slope.data(), row, n);
    }
}

template <Real T>
void backward(const Tensor<T>& x, const Tensor<T>& w, const Hidden<T>& h, Gelu kind,
              const Tensor<T>& dy, Grads<T>& d) {
  Tensor<T> dx = Tensor<T>::uninitialized(x.shape());
  const Mat<T> out = as_rows(dx);
  const Finish<T> through_gelu = [&](Index i, Index j, Mat<T> tile) {
    if (h.slope.empty()) return times_slope(x, kind, i, j, tile);
    const T* slope = h.slope.data() + i * out.ld + j;
    for (Index r = 0; r < tile.rows; ++r) {
      T* row = tile.data + r * tile.ld;
      kernels::multiply(row, slope + r * out.ld, row, tile.cols);
    }
  };
  Products<T> work;
  if (auto dw = d.into(1)) work.add(1, as_rows(dy).t(), as_rows(h.y), dw.beta, as_rows(*dw.x));
  if (d.wants(0)) work.add(1, as_rows(dy), as_rows(w), 0, out, &through_gelu);
  work.run();
  d.add(0, std::move(dx));
  if (auto* db = d[2]) add_row_sums(dy, *db);
}

}  // namespace

template <Real T>
Var<T> gelu_linear(const Var<T>& x, const Var<T>& w, const Var<T>& b, Gelu kind) {
  require_linear("gelu_linear", x.shape(), w.shape(), b.shape(), b.absent());
  const Index o = w.shape()[0];
  Tensor<T> y = Tensor<T>::uninitialized(x.shape().with_last(o));
  const bool keep = x.value().size() <= kSavedElements && (x.tracked() || w.tracked());
  Hidden<T> h = hidden(x.value(), kind, keep);
  times_weight<T>(as_rows(std::as_const(h.y)), w.value(), b.value(), as_rows(y));
  if (!keep) h = {};

  return record(
      "gelu_linear", std::move(y), {x, w, b},
      [x = x.value(), w = w.value(), h = std::move(h), kind](const Tensor<T>& dy, Grads<T>& d) {
        backward(x, w, h.y.empty() ? hidden(x, kind, false) : h, kind, dy, d);
      },
      Flops::of_products(product_flops(x.shape().rows(), o, w.shape()[1])));
}

template Var<float> gelu_linear(const Var<float>&, const Var<float>&, const Var<float>&, Gelu);
template Var<double> gelu_linear(const Var<double>&, const Var<double>&, const Var<double>&, Gelu);

OpSpec specs::gelu_linear() {
  const auto with = [](Gelu kind) {
    return [kind](auto& x) { return headwise::gelu_linear(x[0], x[1], x[2], kind); };
  };
  return {"gelu_linear",
          {op_case("exact", {{2, 3, 4}, {5, 4}, {5}}, any, with(Gelu::exact)),
           op_case("tanh", {{3, 4}, {5, 4}, {5}}, any, with(Gelu::tanh)),
           op_case("no bias", {{3, 4}, {5, 4}}, any,
                   [](auto& x) { return headwise::gelu_linear(x[0], x[1], {}, Gelu::exact); })}};
}

}  // namespace headwise
