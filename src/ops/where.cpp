#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/broadcast.hpp"

namespace headwise {
namespace {

/// a where the condition holds, else b, after broadcasting to `shape`. The other one is not read.
template <Real T>
Tensor<T> chosen(const Condition& condition, const Tensor<T>& a, const Tensor<T>& b,
                 const Shape& shape) {
  Tensor<T> y = Tensor<T>::uninitialized(shape);
  const std::uint8_t* holds = condition.holds.data();
  const T *x = a.data(), *z = b.data();
  T* out = y.data();
  parallel_rows(y.size(), 1, [&](Index begin, Index end) {
    BroadcastWalk in_c(condition.shape, shape, begin);
    BroadcastWalk in_a(a.shape(), shape, begin), in_b(b.shape(), shape, begin);
    for (Index i = begin; i < end; ++i, in_c.next(), in_a.next(), in_b.next())
      out[i] = holds[in_c.at()] != 0 ? x[in_a.at()] : z[in_b.at()];
  });
  return y;
}

}  // namespace

template <Real T>
Var<T> where(const Condition& condition, const Var<T>& a, const Var<T>& b) {
  require(!a.absent() && !b.absent(), "where: there is no {} input",
          a.absent() ? "first" : "second");
  condition.check("where");
  const Shape shape =
      broadcast_shape("where", condition.shape, broadcast_shape("where", a.shape(), b.shape()));
  return record("where", chosen(condition, a.value(), b.value(), shape), {a, b},
                [condition, sa = a.shape(), sb = b.shape()](const Tensor<T>& dy, Grads<T>& d) {
                  const Tensor<T> zero = Tensor<T>::zeros({});
                  if (d.wants(0)) d.add(0, sum_to(sa, chosen(condition, dy, zero, dy.shape())));
                  if (d.wants(1)) d.add(1, sum_to(sb, chosen(condition, zero, dy, dy.shape())));
                });
}

template Var<float> where(const Condition&, const Var<float>&, const Var<float>&);
template Var<double> where(const Condition&, const Var<double>&, const Var<double>&);

OpSpec specs::where() {
  const auto call = [](auto& x) {
    return headwise::where(Condition({2, 3}, {1, 0, 1, 0, 0, 1}), x[0], x[1]);
  };
  return {"where",
          {op_case("same shape", {{2, 3}, {2, 3}}, any, call),
           op_case("batch and scalar", {{4, 2, 3}, {}}, any, call),
           op_case("both ways", {{2, 1}, {2, 1, 3}}, any, call),
           op_case("one variable", {{2, 3}}, any, [](auto& x) {
             return headwise::where(Condition({3}, {0, 1, 1}), x[0], x[0]);
           })}};
}

}  // namespace headwise
