#include <cmath>

#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/reduce.hpp"

namespace headwise {
namespace {

/// Where the first of n > 0 numbers is that none of them exceeds; the first NaN, if there is one.
template <Real T>
Index first_max(const T* x, Index n) {
  Index best = 0;
  for (Index i = 0; i < n && !std::isnan(x[best]); ++i)
    if (x[i] > x[best] || std::isnan(x[i])) best = i;
  return best;
}

}  // namespace

template <Real T>
Var<T> max(const Var<T>& x, const std::vector<Index>& axes, bool keep) {
  require(!x.absent(), "max: there is no input");
  const Reduction to("max", x.shape(), axes, keep);
  const Index n = to.n();
  require(n > 0, "max: {} has no elements", x.shape());
  const Tensor<T> rows = to.rows_of(x.value());
  Tensor<T> y = Tensor<T>::uninitialized(to.result());
  std::vector<Index> where(static_cast<std::size_t>(to.rows()));
  const T* in = rows.data();
  T* out = y.data();
  parallel_rows(to.rows(), n, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      const Index at = r * n + first_max(in + r * n, n);
      where[static_cast<std::size_t>(r)] = at;
      out[r] = in[at];
    }
  });

  return record("max", std::move(y), {x},
                [to, where = std::move(where)](const Tensor<T>& dy, Grads<T>& d) {
                  Tensor<T> drows = Tensor<T>::zeros(to.seen());
                  T* dx = drows.data();
                  const T* up = dy.data();
                  for (const Index at : where) dx[at] = *up++;
                  d.add(0, to.undo(drows));
                });
}

template Var<float> max(const Var<float>&, const std::vector<Index>&, bool);
template Var<double> max(const Var<double>&, const std::vector<Index>&, bool);

OpSpec specs::max() {
  return {"max",
          {op_case("matrix", {{3, 5}}, distinct, [](auto& x) { return headwise::max(x[0]); }),
           op_case("last axis", {{2, 3, 4}}, distinct,
                   [](auto& x) { return headwise::max(x[0], {-1}); }),
           op_case("outer axes, kept", {{2, 3, 4}}, distinct,
                   [](auto& x) {
                     return headwise::max(x[0], {1, 0}, true);
                   }),
           op_case("every other axis", {{2, 3, 2, 2}}, distinct, [](auto& x) {
             return headwise::max(x[0], {0, 2});
           })}};
}

}  // namespace headwise
