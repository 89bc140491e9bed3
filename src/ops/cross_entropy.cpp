#include "ops/cross_entropy.hpp"

#include <algorithm>

#include "headwise/core/parallel.hpp"
#include "headwise/ops/op_table.hpp"

namespace headwise {

Index counted(const Ids& labels) {
  return static_cast<Index>(labels.values.size()) -
         std::count(labels.values.begin(), labels.values.end(), kIgnore);
}

template <Real T>
Var<T> cross_entropy(const Var<T>& logits, const Ids& labels) {
  const Shape& s = logits.shape();
  require(has_a_row_each(s, labels),
          "cross_entropy: logits {} and labels {} do not fit (..., V), (...)", s, labels.shape);
  const Index rows = s.rows(), v = s.last(), count = counted(labels);
  require_labels("cross_entropy", labels, v);

  const T* x = logits.value().data();
  std::vector<double> lse(static_cast<std::size_t>(rows)), loss(static_cast<std::size_t>(rows));
  parallel_rows(rows, v, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      const auto i = static_cast<std::size_t>(r);
      loss[i] = row_loss(x + r * v, v, labels.values[i], lse[i]);
    }
  });
  return record("cross_entropy", mean_loss<T>(loss, count), {logits},
                [x = logits.value(), labels = labels.values, lse = std::move(lse), count](
                    const Tensor<T>& dy, Grads<T>& d) {
                  const Index n = x.shape().last();
                  Tensor<T> dx = Tensor<T>::uninitialized(x.shape());
                  const T* in = x.data();
                  T* out = dx.data();
                  const T scale = count == 0 ? T(0) : dy.item() / static_cast<T>(count);
                  parallel_rows(x.shape().rows(), n, [&](Index begin, Index end) {
                    for (Index r = begin; r < end; ++r) {
                      const auto i = static_cast<std::size_t>(r);
                      row_gradient(in + r * n, n, labels[i], lse[i], scale, out + r * n);
                    }
                  });
                  d.add(0, std::move(dx));
                });
}

template Var<float> cross_entropy(const Var<float>&, const Ids&);
template Var<double> cross_entropy(const Var<double>&, const Ids&);

OpSpec specs::cross_entropy() {
  const auto call = [](auto& x) {
    return headwise::cross_entropy(x[0], Ids({2, 3}, {0, 3, kIgnore, 1, 1, 2}));
  };
  return {"cross_entropy", {op_case("one label ignored", {{2, 3, 4}}, any, call)}};
}

}  // namespace headwise
