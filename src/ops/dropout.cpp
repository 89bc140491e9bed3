#include <algorithm>

#include "headwise/core/parallel.hpp"
#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "kernels/dropout.hpp"

namespace headwise {
namespace {

/// x with the elements dropped whose draw says so. Nothing but the stream's place is needed to do
/// the same to the gradient.
template <Real T>
Tensor<T> drop(const Tensor<T>& x, double rate, const Rng& rng) {
  Tensor<T> y = Tensor<T>::uninitialized(x.shape());
  const T* in = x.data();
  T* out = y.data();
  parallel_rows((x.size() + 3) / 4, 4, [&](Index begin, Index end) {
    kernels::drop(rng, rng.position() / 4 + static_cast<std::uint64_t>(begin), rate, in + 4 * begin,
                  out + 4 * begin, std::min(4 * end, x.size()) - 4 * begin);
  });
  return y;
}

}  // namespace

template <Real T>
Var<T> dropout(const Var<T>& x, double rate, Rng* rng) {
  require(!x.absent(), "dropout: there is no input");
  require<UsageError>(rate >= 0 && rate < 1, "dropout: rate must be in [0, 1), got {}", rate);
  if (rng == nullptr || rate == 0) return x;
  const Rng here = rng->reserve(static_cast<std::uint64_t>(x.value().size()));
  return record("dropout", drop(x.value(), rate, here), {x},
                [rate, here](const Tensor<T>& dy, Grads<T>& d) { d.add(0, drop(dy, rate, here)); });
}

template Var<float> dropout(const Var<float>&, double, Rng*);
template Var<double> dropout(const Var<double>&, double, Rng*);

OpSpec specs::dropout() {
  const auto call = [](auto& x) {
    Rng rng(3);  // the same draws at every evaluation
    return headwise::dropout(x[0], 0.3, &rng);
  };
  return {"dropout", {op_case("rate 0.3", {{3, 5}}, any, call)}};
}

}  // namespace headwise
