#include "headwise/train/adamw.hpp"

#include <algorithm>

#include "headwise/core/parallel.hpp"
#include "kernels/kernels.hpp"

namespace headwise {

template <Real T>
AdamW<T>::AdamW(const AdamWOptions& options) : options_(options) {
  for (const double beta : {options.beta1, options.beta2})
    require<UsageError>(beta >= 0 && static_cast<T>(beta) < 1,
                        "adamw: beta {} is not in [0, 1) in this precision", beta);
}

template <Real T>
void AdamW<T>::update(Moments<T>& m, Param<T>& p, double lr, double grad_scale) const {
  const AdamWOptions& o = options_;
  require(p.grad.shape() == p.value.shape(), "adamw: gradient {} of a parameter {}", p.grad.shape(),
          p.value.shape());
  if (m.mean.empty()) {
    m.mean = Tensor<T>::zeros(p.value.shape());
    m.square = Tensor<T>::zeros(p.value.shape());
  }
  const auto t = static_cast<double>(++m.updates);
  // As precision T knows them, so that the bias correction undoes just what the averages do.
  const auto beta1 = static_cast<T>(o.beta1), beta2 = static_cast<T>(o.beta2);
  const kernels::AdamwStep<T> step{
      .grad_scale = static_cast<T>(grad_scale),
      .beta1 = beta1,
      .beta2 = beta2,
      .eps = static_cast<T>(o.eps),
      .keep = static_cast<T>(is_decayed(p) ? 1 - lr * o.weight_decay : 1),
      .rate = static_cast<T>(lr / (1 - std::pow(static_cast<double>(beta1), t))),
      .unbias2 = static_cast<T>(1 / (1 - std::pow(static_cast<double>(beta2), t)))};
  const T* g = p.grad.values().data();
  T *mean = m.mean.data(), *square = m.square.data(), *value = p.value.data();
  parallel_rows(p.value.size(), 1, [&](Index begin, Index end) {
    kernels::adamw(step, g + begin, mean + begin, square + begin, value + begin, end - begin);
  });
}

template <Real T>
double squared_norm(const Tensor<T>& x) {
  constexpr Index kBlock = 16 * 1024;
  std::vector<double> parts(static_cast<std::size_t>((x.size() + kBlock - 1) / kBlock));
  const T* in = x.data();
  parallel_for(x.size(), kBlock, [&](Index begin, Index end) {
    parts[static_cast<std::size_t>(begin / kBlock)] = kernels::sum_squares(in + begin, end - begin);
  });
  double total = 0;
  for (const double part : parts) total += part;
  return total;
}

template class AdamW<float>;
template class AdamW<double>;
template double squared_norm(const Tensor<float>&);
template double squared_norm(const Tensor<double>&);

}  // namespace headwise
