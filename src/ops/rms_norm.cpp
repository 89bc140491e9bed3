#include <cmath>

#include "headwise/core/parallel.hpp"
#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/row_sums.hpp"

namespace headwise {

template <Real T>
Var<T> rms_norm(const Var<T>& x, const Var<T>& gain, double eps) {
  const Shape& s = x.shape();
  require(s.rank() >= 1 && s.last() > 0, "rms_norm: input {} is not (..., C)", s);
  require(gain.absent() || gain.shape() == Shape{s.last()},
          "rms_norm: input {} and gain {} do not fit", s, gain.shape());
  require<UsageError>(eps >= 0 && std::isfinite(eps),
                      "rms_norm: eps {} is not a finite number >= 0", eps);
  const Index rows = s.rows(), c = s.last();
  Tensor<T> y = Tensor<T>::uninitialized(s), scales = Tensor<T>::uninitialized({rows});
  const T *in = x.value().data(), *g = gain.value().data();
  T *out = y.data(), *scale = scales.data();
  parallel_rows(rows, c, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r)
      scale[r] = kernels::rms_norm(in + r * c, g, static_cast<T>(eps), out + r * c, c);
  });

  return record(
      "rms_norm", std::move(y), {x, gain},
      [x = x.value(), gain = gain.value(), scales, rows, c](const Tensor<T>& dy, Grads<T>& d) {
        // What only the gain wants is computed all the same; its dx is dropped.
        Tensor<T> dx = Tensor<T>::uninitialized(x.shape());
        const RowSums<T> dgain(d.wants(1) ? rows : 0, c);
        T* to = dx.data();
        parallel_for(rows, RowSums<T>(rows, 0).grain(), [&](Index begin, Index end) {
          for (Index r = begin; r < end; ++r)
            kernels::rms_norm_backward(x.data() + r * c, scales.data()[r], gain.data(),
                                       dy.data() + r * c, to + r * c,
                                       d.wants(1) ? dgain.part(begin) : nullptr, c);
        });
        d.add(0, std::move(dx));
        if (auto* sum = d[1]) dgain.add_to(*sum);
      });
}

template Var<float> rms_norm(const Var<float>&, const Var<float>&, double);
template Var<double> rms_norm(const Var<double>&, const Var<double>&, double);

OpSpec specs::rms_norm() {
  const auto call = [](auto& x) { return headwise::rms_norm(x[0], x[1]); };
  return {
      "rms_norm",
      {op_case("gain", {{3, 5}, {5}}, any, call),
       op_case("many rows", {{2, 40, 3}, {3}}, any, call),
       op_case("no gain", {{3, 5}}, any, [](auto& x) { return headwise::rms_norm(x[0], {}); })}};
}

}  // namespace headwise
