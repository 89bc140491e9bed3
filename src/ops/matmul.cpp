#include "headwise/core/gemm.hpp"
#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"

namespace headwise {

template <Real T>
Var<T> matmul(const Var<T>& a, const Var<T>& b) {
  const Shape &sa = a.shape(), &sb = b.shape();
  require(sa.rank() == 2 && sb.rank() == 2 && sa[1] == sb[0],
          "matmul: {} and {} are not matrices (M,K) and (K,N)", sa, sb);
  Tensor<T> y = Tensor<T>::uninitialized({sa[0], sb[1]});
  gemm<T>(1, as_rows(a.value()), as_rows(b.value()), 0, as_rows(y));

  return record(
      "matmul", std::move(y), {a, b},
      [a = a.value(), b = b.value()](const Tensor<T>& dy, Grads<T>& d) {
        Products<T> work;
        if (auto da = d.into(0)) work.add(1, as_rows(dy), as_rows(b).t(), da.beta, as_rows(*da.x));
        if (auto db = d.into(1)) work.add(1, as_rows(a).t(), as_rows(dy), db.beta, as_rows(*db.x));
        work.run();
      },
      Flops::of_products(product_flops(sa[0], sb[1], sa[1])));
}

template Var<float> matmul(const Var<float>&, const Var<float>&);
template Var<double> matmul(const Var<double>&, const Var<double>&);

OpSpec specs::matmul() {
  return {"matmul",
          {op_case("matrices", {{3, 4}, {4, 5}}, any,
                   [](auto& x) { return headwise::matmul(x[0], x[1]); }),
           op_case("square of one matrix", {{3, 3}}, any,
                   [](auto& x) { return headwise::matmul(x[0], x[0]); })}};
}

}  // namespace headwise
