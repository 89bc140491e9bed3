#include <algorithm>
#include <cmath>

#include "headwise/core/parallel.hpp"
#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/row_sums.hpp"

namespace headwise {
namespace {

template <Real T>
using Stats = std::vector<kernels::NormStats<T>>;

template <Real T>
void backward(const Tensor<T>& x, const Tensor<T>& gain, const Stats<T>& stats, const Tensor<T>& dy,
              Grads<T>& d) {
  const Index rows = x.shape().rows(), c = x.shape().last();
  // What only gain and bias want is computed all the same; its dx is dropped.
  Tensor<T> unwanted;
  auto dx = d.into(0);
  if (!dx) {
    unwanted = Tensor<T>::uninitialized(x.shape());
    dx = {&unwanted, 0};
  }
  const RowSums<T> dgain(d.wants(1) ? rows : 0, c), dbias(d.wants(2) ? rows : 0, c);
  const T *in = x.data(), *up = dy.data(), *g = gain.data();
  T* to = dx.x->data();
  parallel_for(rows, RowSums<T>(rows, 0).grain(), [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      kernels::layer_norm_backward(in + r * c, stats[static_cast<std::size_t>(r)], g, up + r * c,
                                   dx.beta, to + r * c, d.wants(1) ? dgain.part(begin) : nullptr,
                                   c);
      if (d.wants(2)) kernels::add(up + r * c, dbias.part(begin), c);
    }
  });
  if (auto* sum = d[1]) dgain.add_to(*sum);
  if (auto* sum = d[2]) dbias.add_to(*sum);
}

template <Real T>
void require_fit(std::string_view op, const Shape& s, const Var<T>& gain, const Var<T>& bias,
                 double eps) {
  require<UsageError>(eps >= 0 && std::isfinite(eps), "{}: eps {} is not a finite number >= 0", op,
                      eps);
  require(s.rank() >= 1 && s.last() > 0, "{}: input {} is not (..., C)", op, s);
  for (const auto& [name, p] : {std::pair{"gain", &gain}, {"bias", &bias}})
    require(p->absent() || p->shape() == Shape{s.last()}, "{}: input {} and {} {} do not fit", op,
            s, name, p->shape());
}

/// Rows begin .. end of y = layer_norm(x).
template <Real T>
void norm_rows(const T* x, const Var<T>& gain, const Var<T>& bias, double eps, T* y,
               Stats<T>& stats, Index begin, Index end, Index c) {
  for (Index r = begin; r < end; ++r)
    stats[static_cast<std::size_t>(r)] = kernels::layer_norm(
        x + r * c, gain.value().data(), bias.value().data(), static_cast<T>(eps), y + r * c, c);
}

template <Real T>
Var<T> record_norm(const Var<T>& x, const Var<T>& gain, const Var<T>& bias, Tensor<T> y,
                   Stats<T> stats) {
  return record("layer_norm", std::move(y), {x, gain, bias},
                [x = x.value(), gain = gain.value(), stats = std::move(stats)](
                    const Tensor<T>& dy, Grads<T>& d) { backward(x, gain, stats, dy, d); });
}

}  // namespace

template <Real T>
Var<T> layer_norm(const Var<T>& x, const Var<T>& gain, const Var<T>& bias, double eps) {
  require_fit("layer_norm", x.shape(), gain, bias, eps);
  const Index rows = x.shape().rows(), c = x.shape().last();
  Tensor<T> y = Tensor<T>::uninitialized(x.shape());
  Stats<T> stats(static_cast<std::size_t>(rows));
  T* out = y.data();
  parallel_rows(rows, c, [&](Index begin, Index end) {
    norm_rows(x.value().data(), gain, bias, eps, out, stats, begin, end, c);
  });
  return record_norm(x, gain, bias, std::move(y), std::move(stats));
}

template <Real T>
SumAndNorm<T> add_layer_norm(const Var<T>& a, const Var<T>& b, const Var<T>& gain,
                             const Var<T>& bias, double eps) {
  require(a.shape() == b.shape(), "add_layer_norm: {} and {} are not of one shape", a.shape(),
          b.shape());
  require_fit("add_layer_norm", a.shape(), gain, bias, eps);
  const Index rows = a.shape().rows(), c = a.shape().last();
  Tensor<T> sum = Tensor<T>::uninitialized(a.shape()), y = Tensor<T>::uninitialized(a.shape());
  Stats<T> stats(static_cast<std::size_t>(rows));
  const T *one = a.value().data(), *other = b.value().data();
  T *total = sum.data(), *out = y.data();
  parallel_rows(rows, c, [&](Index begin, Index end) {
    std::copy(one + begin * c, one + end * c, total + begin * c);
    kernels::add(other + begin * c, total + begin * c, (end - begin) * c);
    norm_rows<T>(total, gain, bias, eps, out, stats, begin, end, c);
  });
  const Var<T> both = record("add", sum, {a, b}, [](const Tensor<T>& dy, Grads<T>& d) {
    d.add(0, dy);
    d.add(1, dy);
  });
  // A tape's tap may have put another sum in its place, of which nobody knows the norm.
  if (!both.value().shares(sum)) return {both, layer_norm(both, gain, bias, eps)};
  return {both, record_norm(both, gain, bias, std::move(y), std::move(stats))};
}

template Var<float> layer_norm(const Var<float>&, const Var<float>&, const Var<float>&, double);
template Var<double> layer_norm(const Var<double>&, const Var<double>&, const Var<double>&, double);
template SumAndNorm<float> add_layer_norm(const Var<float>&, const Var<float>&, const Var<float>&,
                                          const Var<float>&, double);
template SumAndNorm<double> add_layer_norm(const Var<double>&, const Var<double>&,
                                           const Var<double>&, const Var<double>&, double);

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
                   [](auto& x) { return headwise::layer_norm(x[0], {}, {}); }),
           op_case("of a sum, and that", {{3, 5}, {3, 5}, {5}, {5}}, any, [](auto& x) {
             const auto [sum, norm] = headwise::add_layer_norm(x[0], x[1], x[2], x[3]);
             return sum * norm;
           })}};
}

}  // namespace headwise
