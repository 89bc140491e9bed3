#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/few_rows.cpp"
#include "hwy/foreach_target.h"
// Highway's own order: foreach_target first.
#include "hwy/highway.h"
#include "kernels/dispatch.hpp"
#include "kernels/kernels.hpp"
#include "kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headwise::kernels::HWY_NAMESPACE {

/// Columns j to j + W of y, for R rows of x. Each result has one vector of sums, whatever R and W:
/// the order of its terms follows from their number alone.
template <int R, int W, class T>
HWY_INLINE void columns(Mat<const T> x, Mat<const T> w, Mat<T> y, Index j) {
  const hn::ScalableTag<T> d;
  const Index c = x.cols, lanes = static_cast<Index>(hn::Lanes(d));
  hn::Vec<decltype(d)> sums[W][R];
  for (auto& of_weight : sums)
    for (auto& sum : of_weight) sum = hn::Zero(d);
  const T* const first = w.data + j * w.ld;
  const auto add_terms = [&](Index i, auto load) HWY_ATTR {
    hn::Vec<decltype(d)> weights[W];
    for (int k = 0; k < W; ++k) weights[k] = load(first + k * w.ld + i);
    for (int r = 0; r < R; ++r) {
      const auto v = load(x.data + r * x.ld + i);
      for (int k = 0; k < W; ++k) sums[k][r] = hn::MulAdd(v, weights[k], sums[k][r]);
    }
  };
  Index i = 0;
  for (; i + lanes <= c; i += lanes)
    add_terms(i, [&](const T* p) HWY_ATTR { return hn::LoadU(d, p); });
  if (i < c) add_terms(i, [&](const T* p) HWY_ATTR { return load_some(d, p, c - i, T(0)); });
  for (int r = 0; r < R; ++r)
    for (int k = 0; k < W; ++k) y.data[r * y.ld + j + k] = sum_of(d, sums[k][r]);
}

template <int R, class T>
void rows(Mat<const T> x, Mat<const T> w, Mat<T> y) {
  if constexpr (R > 1)
    if (x.rows < R) return rows<R - 1, T>(x, w, y);
  constexpr int kAtOnce = R <= 2 ? 1 : R <= 4 ? 4 : 2;
  Index j = 0;
  for (; j + kAtOnce <= w.rows; j += kAtOnce) columns<R, kAtOnce, T>(x, w, y, j);
  for (; j < w.rows; ++j) columns<R, 1, T>(x, w, y, j);
}

template <class T>
void few_rows(Mat<const T> x, Mat<const T> w, Mat<T> y) {
  if (x.rows > 0) rows<kFewRows, T>(x, w, y);
}

void few_rows_f32(Mat<const float> x, Mat<const float> w, Mat<float> y) {
  HWY_NAMESPACE::few_rows<float>(x, w, y);
}
void few_rows_f64(Mat<const double> x, Mat<const double> w, Mat<double> y) {
  HWY_NAMESPACE::few_rows<double>(x, w, y);
}

}  // namespace headwise::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headwise::kernels {
HEADWISE_EXPORT(few_rows);

template <Real T>
void few_rows(Mat<const T> x, Mat<const T> w, Mat<T> y) {
  HEADWISE_KERNEL(few_rows, T)(x, w, y);
}

template void few_rows(Mat<const float>, Mat<const float>, Mat<float>);
template void few_rows(Mat<const double>, Mat<const double>, Mat<double>);
}  // namespace headwise::kernels
#endif
