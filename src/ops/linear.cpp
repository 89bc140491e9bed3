#include "headwise/core/gemm.hpp"
#include "headwise/core/parallel.hpp"
#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "kernels/kernels.hpp"

namespace headwise {
namespace {

/// Adds the sum of dy's rows to db.
template <Real T>
void add_row_sums(const Tensor<T>& dy, Tensor<T>& db) {
  const Index rows = dy.shape().rows(), o = dy.shape().last();
  const T* in = dy.data();
  T* out = db.data();
  parallel_for(o, 64, [&](Index begin, Index end) {  // columns, so that each has one adder
    for (Index r = 0; r < rows; ++r) kernels::add(in + r * o + begin, out + begin, end - begin);
  });
}

}  // namespace

template <Real T>
Var<T> linear(const Var<T>& x, const Var<T>& w, const Var<T>& b) {
  const Shape &sx = x.shape(), &sw = w.shape();
  const bool fits = sx.rank() >= 1 && sw.rank() == 2 && sx.last() == sw[1];
  if (b.absent())
    require(fits, "linear: input {} and weight {} do not fit (..., C), (O,C)", sx, sw);
  else
    require(fits && b.shape() == Shape{sw[0]},
            "linear: input {}, weight {} and bias {} do not fit (..., C), (O,C), (O)", sx, sw,
            b.shape());

  const Index o = sw[0];
  Tensor<T> y = Tensor<T>::uninitialized(sx.with_last(o));
  gemm<T>(1, as_rows(x.value()), as_rows(w.value()).t(), 0, as_rows(y));
  if (!b.absent()) {
    T* out = y.data();
    parallel_rows(sx.rows(), o, [&](Index begin, Index end) {
      for (Index r = begin; r < end; ++r) kernels::add(b.value().data(), out + r * o, o);
    });
  }

  return record(
      "linear", std::move(y), {x, w, b},
      [x = x.value(), w = w.value()](const Tensor<T>& dy, Grads<T>& d) {
        Products<T> work;  // run together, in one parallel region; few tiles first
        if (auto dw = d.into(1)) work.add(1, as_rows(dy).t(), as_rows(x), dw.beta, as_rows(*dw.x));
        if (auto dx = d.into(0)) work.add(1, as_rows(dy), as_rows(w), dx.beta, as_rows(*dx.x));
        work.run();
        if (auto* db = d[2]) add_row_sums(dy, *db);
      },
      product_flops(sx.rows(), o, sw[1]));
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
