#include <algorithm>
#include <cmath>
#include <limits>

#include "headwise/core/parallel.hpp"
#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "kernels/kernels.hpp"

namespace headwise {
namespace {

/// Whether no element of a row, or of its result, is more than -inf: softmax gives zeros there.
template <Real T>
bool is_nothing(const T* x, Index n) {
  constexpr T kLeast = -std::numeric_limits<T>::infinity();
  return std::all_of(x, x + n, [](T v) { return v == kLeast; });
}

/// dx = dy - softmax sum(dy), from y = log softmax.
template <Real T>
void backward_row(const T* y, const T* dy, T* dx, Index n) {
  if (is_nothing(y, n)) {
    std::fill_n(dx, n, T(0));
    return;
  }
  kernels::exp_minus(y, 0, static_cast<T>(kernels::sum(dy, n)), dx, n);
  for (Index i = 0; i < n; ++i) dx[i] = dy[i] - dx[i];
}

}  // namespace

template <Real T>
Var<T> log_softmax(const Var<T>& x) {
  require(x.shape().rank() >= 1, "log_softmax: input {} is not (..., C)", x.shape());
  const Index rows = x.shape().rows(), c = x.shape().last();
  Tensor<T> y = Tensor<T>::uninitialized(x.shape());
  const T* in = x.value().data();
  T* out = y.data();
  parallel_rows(rows, c, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      const double lse = kernels::log_sum_exp(in + r * c, c);
      const double away = is_nothing(in + r * c, c) ? 0 : lse;
      for (Index i = r * c; i < (r + 1) * c; ++i)
        out[i] = static_cast<T>(static_cast<double>(in[i]) - away);
    }
  });

  return record("log_softmax", y, {x}, [y, rows, c](const Tensor<T>& dy, Grads<T>& d) {
    Tensor<T> dx = Tensor<T>::uninitialized(dy.shape());
    T* to = dx.data();
    parallel_rows(rows, c, [&](Index begin, Index end) {
      for (Index r = begin; r < end; ++r)
        backward_row(y.data() + r * c, dy.data() + r * c, to + r * c, c);
    });
    d.add(0, std::move(dx));
  });
}

template Var<float> log_softmax(const Var<float>&);
template Var<double> log_softmax(const Var<double>&);

OpSpec specs::log_softmax() {
  return {"log_softmax",
          {op_case("rows", {{2, 3, 5}}, any, [](auto& x) { return headwise::log_softmax(x[0]); })}};
}

}  // namespace headwise
