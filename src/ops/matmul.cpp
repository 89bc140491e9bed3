#include "headwise/core/gemm.hpp"
#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "ops/broadcast.hpp"

namespace headwise {
namespace {

/// The sizes of the matrices of x, and nothing else of it.
Shape without_matrix(const Shape& x) {
  return Shape(x.sizes().first(static_cast<std::size_t>(x.rank() - 2)));
}
Shape with_matrix(const Shape& batch, Index rows, Index cols) {
  std::vector<Index> sizes(batch.sizes().begin(), batch.sizes().end());
  sizes.insert(sizes.end(), {rows, cols});
  return Shape(std::span<const Index>(sizes));
}

/// The n-th matrix of x (..., M, N); T may be const.
template <class T>
Mat<T> matrix(T* x, const Shape& s, Index n) {
  return {x + n * s[-2] * s[-1], s[-2], s[-1], s[-1]};
}

/// Calls f(i, ia, ib): matrix i of a result of this shape comes from matrix ia of a and ib of b.
template <class F>
void for_each_matrix(const Shape& batch, const Shape& a, const Shape& b, F f) {
  BroadcastWalk in_a(without_matrix(a), batch), in_b(without_matrix(b), batch);
  for (Index i = 0; i < batch.size(); ++i, in_a.next(), in_b.next()) f(i, in_a.at(), in_b.at());
}

/// The gradient of one factor: its place or, where the batch repeats it, one product for each
/// repetition, which are then added up.
template <Real T>
class FactorGradient {
 public:
  FactorGradient(Grads<T>& d, Index input, const Shape& factor, const Shape& batch)
      : d_(d), input_(input), factor_(factor), all_(with_matrix(batch, factor[-2], factor[-1])) {
    if (!d.wants(input)) return;
    if (all_.size() == factor.size()) {
      target_ = d.into(input);
    } else {
      repeated_ = Tensor<T>::uninitialized(all_);
      target_ = {&repeated_, 0};
    }
    data_ = target_.x->data();
  }
  /// Adds product i to those that wait.
  void add(Products<T>& work, Mat<const T> a, Mat<const T> b, Index i) {
    if (target_) work.add(1, a, b, target_.beta, matrix(data_, all_, i));
  }
  void finish() {
    if (!repeated_.empty()) d_.add(input_, sum_to(factor_, repeated_));
  }

 private:
  Grads<T>& d_;
  Index input_;
  Shape factor_, all_;
  Target<T> target_;
  Tensor<T> repeated_;
  T* data_ = nullptr;
};

}  // namespace

template <Real T>
Var<T> matmul(const Var<T>& a, const Var<T>& b) {
  Shape sa = a.shape();
  const Shape sb = b.shape();
  require(sa.rank() >= 2 && sb.rank() >= 2 && sa[-1] == sb[-2],
          "matmul: {} and {} do not fit (..., M,K), (..., K,N)", sa, sb);
  const Shape shape = with_matrix(broadcast_shape("matmul", sa, sb, 2), sa[-2], sb[-1]);
  if (sb.rank() == 2) sa = {sa.rows(), sa[-1]};  // one tall product
  const Shape batch = broadcast_shape("matmul", sa, sb, 2);
  const Shape sy = with_matrix(batch, sa[-2], sb[-1]);

  Tensor<T> y = Tensor<T>::uninitialized(shape);
  T* out = y.data();
  Products<T> work;
  for_each_matrix(batch, sa, sb, [&](Index i, Index ia, Index ib) {
    work.add(1, matrix(a.value().data(), sa, ia), matrix(b.value().data(), sb, ib), 0,
             matrix(out, sy, i));
  });
  work.run();

  const double flops = static_cast<double>(batch.size()) * product_flops(sa[-2], sb[-1], sa[-1]);
  return record(
      "matmul", std::move(y), {a, b},
      [a = a.value(), b = b.value(), sa, sb, sy, batch](const Tensor<T>& dy, Grads<T>& d) {
        FactorGradient<T> da(d, 0, sa, batch), db(d, 1, sb, batch);
        Products<T> back;
        for_each_matrix(batch, sa, sb, [&](Index i, Index ia, Index ib) {
          const Mat<const T> up = matrix(dy.data(), sy, i);
          da.add(back, up, matrix(b.data(), sb, ib).t(), i);
          db.add(back, matrix(a.data(), sa, ia).t(), up, i);
        });
        back.run();
        da.finish();
        db.finish();
      },
      Flops::of_products(flops));
}

template Var<float> matmul(const Var<float>&, const Var<float>&);
template Var<double> matmul(const Var<double>&, const Var<double>&);

OpSpec specs::matmul() {
  const auto call = [](auto& x) { return headwise::matmul(x[0], x[1]); };
  return {"matmul",
          {op_case("matrices", {{3, 4}, {4, 5}}, any, call),
           op_case("square of one matrix", {{3, 3}}, any,
                   [](auto& x) { return headwise::matmul(x[0], x[0]); }),
           op_case("a batch of each", {{2, 3, 2, 4}, {2, 3, 4, 3}}, any, call),
           op_case("squares of a batch", {{2, 3, 3}}, any,
                   [](auto& x) { return headwise::matmul(x[0], x[0]); }),
           op_case("one right factor", {{2, 3, 4}, {4, 2}}, any, call),
           op_case("one left factor", {{3, 4}, {2, 4, 2}}, any, call),
           op_case("batches both ways", {{2, 1, 3, 2}, {3, 2, 2}}, any, call)}};
}

}  // namespace headwise
