#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/few_rows.cpp"
#include "hwy/foreach_target.h"
// Highway's own order: foreach_target first.
#include <algorithm>

#include "hwy/highway.h"
#include "kernels/dispatch.hpp"
#include "kernels/kernels.hpp"
#include "kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headwise::kernels::HWY_NAMESPACE {

constexpr int kRegisters = HWY_TARGET <= HWY_AVX3 ? 32 : 16;

/// Rows of w that rows of x meet at a time: what the registers hold. For one or two, memory is the
/// limit, and it is read fastest from end to end (measured: 21 GB/s a core, 14 as four streams).
constexpr int weights_at_once(int rows) {
  return rows <= 2 ? 1 : std::min(4, (kRegisters - 1) / (rows + 1));
}

/// For R rows of x and W of w, starting at `weights`, the vector of sums of each pair: of row r and
/// weight k at sums + (r lanes + k) lanes. Whatever R and W, the order of its terms is the same.
template <int R, int W, class T>
HWY_INLINE void multiply(Mat<const T> x, const T* weights, Index ld, T* sums) {
  const hn::ScalableTag<T> d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  hn::Vec<decltype(d)> sum[W][R];
  for (auto& of_weight : sum)
    for (auto& s : of_weight) s = hn::Zero(d);
  const auto add_terms = [&](Index i, auto load) HWY_ATTR {
    hn::Vec<decltype(d)> weight[W];
    for (int k = 0; k < W; ++k) weight[k] = load(weights + k * ld + i);
    for (int r = 0; r < R; ++r) {
      const auto v = load(x.data + r * x.ld + i);
      for (int k = 0; k < W; ++k) sum[k][r] = hn::MulAdd(v, weight[k], sum[k][r]);
    }
  };
  Index i = 0;
  for (; i + lanes <= x.cols; i += lanes)
    add_terms(i, [&](const T* p) HWY_ATTR { return hn::LoadU(d, p); });
  if (const Index rest = x.cols - i; rest > 0)
    add_terms(i, [&](const T* p) HWY_ATTR { return load_some(d, p, rest, T(0)); });
  for (int r = 0; r < R; ++r)
    for (int k = 0; k < W; ++k) hn::Store(sum[k][r], d, sums + (r * lanes + k) * lanes);
}

/// Adds up the lanes of as many vectors as there are lanes, by neighbours: lane k of the result is
/// the sum of vector k. The vectors are overwritten.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> sums_of(D d, T* vectors) {
#if HWY_TARGET != HWY_SCALAR  // where a vector is one lane
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  for (Index n = lanes / 2; n > 0; n /= 2)
    for (Index i = 0; i < n; ++i) {
      const auto a = hn::Load(d, vectors + 2 * i * lanes);
      const auto b = hn::Load(d, vectors + (2 * i + 1) * lanes);
      hn::Store(hn::Add(hn::ConcatEven(d, b, a), hn::ConcatOdd(d, b, a)), d, vectors + i * lanes);
    }
#endif
  return hn::Load(d, vectors);
}

template <int R, class T>
void rows(Mat<const T> x, Mat<const T> w, Mat<T> y) {
  if constexpr (R > 1)
    if (x.rows < R) return rows<R - 1, T>(x, w, y);
  constexpr int kFirst = std::min(R, 2);
  constexpr std::size_t kLanes = HWY_MAX_BYTES / sizeof(T);
  const hn::ScalableTag<T> d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  HWY_ALIGN T sums[R * kLanes * kLanes] = {};
  for (Index j = 0; j < w.rows; j += lanes) {
    const Index n = std::min(lanes, w.rows - j);
    const T* const weights = w.data + j * w.ld;
    // Two rows read the weights from memory, end to end; the others find them in the cache.
    for (Index k = 0; k < n; ++k)
      multiply<kFirst, 1>(x, weights + k * w.ld, w.ld, sums + k * lanes);
    if constexpr (R > kFirst) {
      const Mat<const T> others = x.block(kFirst, 0, R - kFirst, x.cols);
      T* const to = sums + kFirst * lanes * lanes;
      constexpr int kAtOnce = weights_at_once(R - kFirst);
      Index k = 0;
      for (; k + kAtOnce <= n; k += kAtOnce)
        multiply<R - kFirst, kAtOnce>(others, weights + k * w.ld, w.ld, to + k * lanes);
      for (; k < n; ++k) multiply<R - kFirst, 1>(others, weights + k * w.ld, w.ld, to + k * lanes);
    }
    for (int r = 0; r < R; ++r) {
      const auto results = sums_of(d, sums + r * lanes * lanes);
      T* const out = y.data + r * y.ld + j;
      if (n == lanes)
        hn::StoreU(results, d, out);
      else
        store_some(d, results, out, n);
    }
  }
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
