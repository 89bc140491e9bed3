#include "headwise/core/parallel.hpp"
#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "kernels/kernels.hpp"

namespace headwise {
namespace {

template <Real T>
using Stats = std::vector<kernels::NormStats<T>>;

/// Rows that share a partial sum of the gradients of gain and bias: follows from the shape alone.
Index rows_per_block(Index rows) { return std::max<Index>(16, (rows + 31) / 32); }

template <Real T>
void backward(const Tensor<T>& x, const Tensor<T>& gain, const Stats<T>& stats, const Tensor<T>& dy,
              Grads<T>& d) {
  const Index rows = x.shape().rows(), c = x.shape().last();
  const Index grain = rows_per_block(rows), blocks = (rows + grain - 1) / grain;
  // What only gain and bias want is computed all the same; its dx is dropped.
  Tensor<T> unwanted;
  auto dx = d.into(0);
  if (!dx) {
    unwanted = Tensor<T>::uninitialized(x.shape());
    dx = {&unwanted, 0};
  }
  Tensor<T> partial_gain, partial_bias;
  if (d.wants(1)) partial_gain = Tensor<T>::zeros({blocks, c});
  if (d.wants(2)) partial_bias = Tensor<T>::zeros({blocks, c});
  const T *in = x.data(), *up = dy.data(), *g = gain.data();
  T *to = dx.x->data(), *pg = partial_gain.data(), *pb = partial_bias.data();
  parallel_for(rows, grain, [&](Index begin, Index end) {
    const Index block = begin / grain;
    for (Index r = begin; r < end; ++r) {
      kernels::layer_norm_backward(in + r * c, stats[static_cast<std::size_t>(r)], g, up + r * c,
                                   dx.beta, to + r * c, pg == nullptr ? nullptr : pg + block * c,
                                   c);
      if (pb != nullptr) kernels::add(up + r * c, pb + block * c, c);
    }
  });
  const auto combine = [&](Index i, const T* partial) {
    if (auto* sum = d[i])
      for (Index block = 0; block < blocks; ++block)
        kernels::add(partial + block * c, sum->data(), c);
  };
  combine(1, pg);
  combine(2, pb);
}

}  // namespace

template <Real T>
Var<T> layer_norm(const Var<T>& x, const Var<T>& gain, const Var<T>& bias, double eps) {
  const Shape& s = x.shape();
  require(s.rank() >= 1 && s.last() > 0, "layer_norm: input {} is not (..., C)", s);
  const Index rows = s.rows(), c = s.last();
  require(gain.absent() || gain.shape() == Shape{c}, "layer_norm: input {} and gain {} do not fit",
          s, gain.shape());
  require(bias.absent() || bias.shape() == Shape{c}, "layer_norm: input {} and bias {} do not fit",
          s, bias.shape());

  Tensor<T> y = Tensor<T>::uninitialized(s);
  Stats<T> stats(static_cast<std::size_t>(rows));
  T* out = y.data();
  parallel_rows(rows, c, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r)
      stats[static_cast<std::size_t>(r)] =
          kernels::layer_norm(x.value().data() + r * c, gain.value().data(), bias.value().data(),
                              static_cast<T>(eps), out + r * c, c);
  });
  return record("layer_norm", std::move(y), {x, gain, bias},
                [x = x.value(), gain = gain.value(), stats = std::move(stats)](
                    const Tensor<T>& dy, Grads<T>& d) { backward(x, gain, stats, dy, d); });
}

template Var<float> layer_norm(const Var<float>&, const Var<float>&, const Var<float>&, double);
template Var<double> layer_norm(const Var<double>&, const Var<double>&, const Var<double>&, double);

OpSpec specs::layer_norm() {
  return {"layer_norm",
          {op_case("gain and bias", {{3, 5}, {5}, {5}}, any,
                   [](auto& x) { return headwise::layer_norm(x[0], x[1], x[2]); }),
           op_case("many rows", {{2, 20, 3}, {3}, {3}}, any,
                   [](auto& x) { return headwise::layer_norm(x[0], x[1], x[2]); }),
           op_case("gain alone", {{3, 5}, {5}}, any,
                   [](auto& x) { return headwise::layer_norm(x[0], x[1], {}); }),
           op_case("bias alone", {{3, 5}, {5}}, any,
                   [](auto& x) { return headwise::layer_norm(x[0], {}, x[1]); }),
           op_case("neither", {{3, 5}}, any,
                   [](auto& x) { return headwise::layer_norm(x[0], {}, {}); })}};
}

}  // namespace headwise
