#include "ops/linear.hpp"
#include "headwise/core/gemm.hpp"
#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"

namespace headwise {

static_assert(kFewRows == kernels::kFewRows);

template <Real T>
Var<T> linear(const Var<T>& x, const Var<T>& w, const Var<T>& b) {
  require_linear("linear", x.shape(), w.shape(), b.shape(), b.absent());
  const Index o = w.shape()[0];
  Tensor<T> y = Tensor<T>::uninitialized(x.shape().with_last(o));
  times_weight<T>(as_rows(x.value()), w.value(), b.value(), as_rows(y));

  return record(
      "linear", std::move(y), {x, w, b},
      [x = x.value(), w = w.value()](const Tensor<T>& dy, Grads<T>& d) {
        Products<T> work;  // run together, in one parallel region; few tiles first
        if (auto dw = d.into(1)) work.add(1, as_rows(dy).t(), as_rows(x), dw.beta, as_rows(*dw.x));
        if (auto dx = d.into(0)) work.add(1, as_rows(dy), as_rows(w), dx.beta, as_rows(*dx.x));
        work.run();
        if (auto* db = d[2]) add_row_sums(dy, *db);
      },
      Flops::of_products(product_flops(x.shape().rows(), o, w.shape()[1])));
}

template Var<float> linear(const Var<float>&, const Var<float>&, const Var<float>&);
template Var<double> linear(const Var<double>&, const Var<double>&, const Var<double>&);

OpSpec specs::linear() {
  const auto biased = [](auto& x) { return headwise::linear(x[0], x[1], x[2]); };
  return {"linear",
          {op_case("matrix", {{3, 4}, {5, 4}, {5}}, any, biased),
           op_case("batch of rows", {{2, 3, 4}, {5, 4}, {5}}, any, biased),
           op_case("one row", {{4}, {5, 4}, {5}}, any, biased),
           op_case("no bias", {{3, 4}, {5, 4}}, any,
                   [](auto& x) { return headwise::linear(x[0], x[1]); })}};
}

}  // namespace headwise
