#include "kernels/attention.hpp"

#include <algorithm>
#include <cmath>

#include "headwise/core/gemm.hpp"
#include "headwise/core/parallel.hpp"
#include "kernels/dropout.hpp"
#include "kernels/seen_product.hpp"

namespace headwise::kernels {
namespace {

/// The window of one head into a (B,T,heads*width) tensor; x may be null.
template <class T>
Mat<T> head(T* x, Index b, Index h, Index rows, Index heads, Index width) {
  const Index c = heads * width;
  return {x == nullptr ? x : x + b * rows * c + h * width, rows, width, c};
}

/// The rows of a block's queries, and those of the keys it sees.
template <class T>
Mat<T> rows_of(Mat<T> x, const Block& at) {
  return x.block(at.begin, 0, at.rows(), x.cols);
}
template <class T>
Mat<T> keys_of(Mat<T> x, const Block& at) {
  return x.block(at.first, 0, at.keys(), x.cols);
}

template <Real T>
void fill(Mat<T> x, T value) {
  for (Index i = 0; i < x.rows; ++i) std::fill_n(x.data + i * x.ld, x.cols, value);
}

/// One head of one sequence.
template <Real T>
class Head {
 public:
  Head(const AttentionPlan<T>& plan, Index b, Index h)
      : plan_(plan), view_(plan.view(b)), b_(b), h_(h), kv_(h / (plan.heads / plan.kv_heads)) {}

  [[nodiscard]] const std::vector<Block>& blocks() const { return view_.blocks; }

  template <class U>
  [[nodiscard]] Mat<U> q(U* x) const {
    return head(x, b_, h_, plan_.queries, plan_.heads, plan_.d);
  }
  template <class U>
  [[nodiscard]] Mat<U> k(U* x) const {
    return head(x, b_, kv_, plan_.keys, plan_.kv_heads, plan_.d);
  }
  template <class U>
  [[nodiscard]] Mat<U> v(U* x) const {
    return head(x, b_, kv_, plan_.keys, plan_.kv_heads, plan_.dv);
  }
  template <class U>
  [[nodiscard]] Mat<U> y(U* x) const {
    return head(x, b_, h_, plan_.queries, plan_.heads, plan_.dv);
  }
  /// This head's part of something with `each` elements a head.
  template <class U>
  [[nodiscard]] U* part(U* x, Index each) const {
    return x == nullptr ? x : x + (b_ * plan_.heads + h_) * each;
  }
  /// Whether it is the first to add to its keys' and values' gradients.
  [[nodiscard]] bool first_of_group() const { return h_ % (plan_.heads / plan_.kv_heads) == 0; }

  /// p = softmax(scale q k^T, masked) for the block's rows and keys.
  void pattern(const Block& at, Mat<const T> q, Mat<const T> k, Mat<T> p, RowStats<T>* s) const {
    scores(at, q, k, p);
    for_each_row(at, p, [&](T* row, Index n, Index t) {
      const RowStats<T> found = softmax(row, n);
      if (std::isnan(found.max)) strike(t, row);
      if (s != nullptr) s[t] = found;
    });
  }
  /// The same from the statistics that it left: the same bits.
  void pattern_again(const Block& at, Mat<const T> q, Mat<const T> k, Mat<T> p,
                     const RowStats<T>* s) const {
    scores(at, q, k, p);
    for_each_row(at, p, [&](T* row, Index n, Index t) {
      softmax_again(row, n, s[t]);
      if (std::isnan(s[t].max)) strike(t, row);
    });
  }

  /// Whether query t sees key s.
  [[nodiscard]] bool sees(Index t, Index s) const {
    const SeenKeys& seen = seen_by(t);
    if (s < seen.first || s >= seen.end || (seen.allow != nullptr && seen.allow[s] == 0))
      return false;
    const double* bias = plan_.bias.row(b_, h_, t, plan_.keys);
    return bias == nullptr || bias[s] != kStruck;
  }
  /// Zeroes what query t does not see, in a row from its first seen key on.
  void strike(Index t, T* row) const {
    kernels::strike(seen_by(t), plan_.bias.row(b_, h_, t, plan_.keys), row);
  }

  /// Calls f(row from its first seen key, their number, t) for the rows of a block, and zeroes what
  /// they may not see.
  template <class F>
  void for_each_row(const Block& at, Mat<T> p, F f) const {
    for (Index i = 0; i < at.rows(); ++i) {
      T* row = p.data + i * p.ld;
      const SeenKeys& seen = seen_by(at.begin + i);
      const Index n = seen.count(), before = n == 0 ? 0 : seen.first - at.first;
      std::fill(row, row + before, T(0));
      f(row + before, n, at.begin + i);
      std::fill(row + before + n, row + at.keys(), T(0));
    }
  }

  /// out = dropout of p, entry (b,h,t,s) by a draw of its own. out may be p.
  void drop(const Block& at, Mat<const T> p, Mat<T> out) const {
    const auto blocks = static_cast<std::uint64_t>((plan_.keys + 3) / 4);  // of four draws, a row
    const auto row = static_cast<std::uint64_t>((b_ * plan_.heads + h_) * plan_.queries + at.begin);
    const std::uint64_t first =
        plan_.random->position() / 4 + row * blocks + static_cast<std::uint64_t>(at.first / 4);
    for (Index i = 0; i < at.rows(); ++i)
      kernels::drop(*plan_.random, first + static_cast<std::uint64_t>(i) * blocks, plan_.dropout,
                    p.data + i * p.ld, out.data + i * out.ld, at.keys());
  }

  /// The pattern that the product with v reads: p itself, or p with dropout in `room`.
  Mat<const T> to_apply(const Block& at, Mat<const T> p, Mat<T> room) const {
    if (plan_.dropout == 0) return p;
    drop(at, p, room);
    return room;
  }

  /// The block's part of a whole pattern (B,H,T,S).
  template <class U>
  [[nodiscard]] Mat<U> of_whole(const Block& at, U* whole) const {
    return {part(whole, plan_.queries * plan_.keys) + at.begin * plan_.keys + at.first, at.rows(),
            at.keys(), plan_.keys};
  }

  /// y = p v for the block's rows, p being what to_apply() gives.
  void apply(const Block& at, Mat<const T> p, Mat<const T> v, Mat<T> y) const {
    gemm_tile<T>(1, p, keys_of(v, at), 0, rows_of(y, at));
    if (all_finite<T>(rows_of(y, at))) return;
    product_of_seen<T>(1, p, keys_of(v, at), 0, rows_of(y, at), [&](Index i, Index j) {
      return plan_.replaced ? p.data[i * p.ld + j] != 0 : sees(at.begin + i, at.first + j);
    });
  }

 private:
  [[nodiscard]] const SeenKeys& seen_by(Index t) const {
    return view_.seen[static_cast<std::size_t>(t)];
  }
  void scores(const Block& at, Mat<const T> q, Mat<const T> k, Mat<T> p) const {
    gemm_tile<T>(plan_.scale, rows_of(q, at), keys_of(k, at).t(), 0, p);
    for (Index t = at.begin; t < at.end; ++t) {
      const SeenKeys& seen = seen_by(t);
      if (seen.count() == 0) continue;
      mask_row(seen, plan_.bias.row(b_, h_, t, plan_.keys),
               p.data + (t - at.begin) * p.ld + seen.first - at.first);
    }
  }

  const AttentionPlan<T>& plan_;
  const View& view_;
  Index b_, h_, kv_;
};

/// Calls f(head) for every head, in parallel.
template <Real T, class F>
void for_each_head(const AttentionPlan<T>& plan, F f) {
  parallel_for(plan.batch * plan.heads, 1,
               [&](Index i, Index) { f(Head<T>(plan, i / plan.heads, i % plan.heads)); });
}

/// Calls f(head, false) for every head, those that share a key head one after the other: they add
/// to the same places. Where what they wrote is not finite(head), they do it again with f(head,
/// true).
template <Real T, class F, class Finite>
void for_each_group(const AttentionPlan<T>& plan, F f, Finite finite) {
  const Index group = plan.heads / plan.kv_heads;
  parallel_for(plan.batch * plan.kv_heads, 1, [&](Index i, Index) {
    const Index b = i / plan.kv_heads, h = i % plan.kv_heads * group;
    bool good = true;
    for (Index j = 0; j < group; ++j) f(Head<T>(plan, b, h + j), false);
    for (Index j = 0; j < group; ++j) good = good && finite(Head<T>(plan, b, h + j));
    for (Index j = 0; j < group && !good; ++j) f(Head<T>(plan, b, h + j), true);
  });
}

/// Whether a window that may be null is finite.
template <Real T>
bool finite_or_null(Mat<T> x) {
  return x.data == nullptr || all_finite<T>(x);
}

/// Room for one block of a pattern for each worker. Made before the parallel region, so that how
/// much is taken does not depend on who works when.
template <Real T>
class Scratch {
 public:
  explicit Scratch(const AttentionPlan<T>& plan) {
    for (const View& view : plan.views)
      for (const Block& at : view.blocks) each_ = std::max(each_, at.rows() * at.keys());
    // In decoding the keys grow by one a token: the room is that of the last one all the same.
    constexpr Index kStep = 4096;
    each_ = (each_ + kStep - 1) / kStep * kStep;
    room_ = Tensor<T>::uninitialized({workers(), each_});
    data_ = room_.data();
  }
  Mat<T> operator()(const Block& at) const {
    return {data_ + worker() * each_, at.rows(), at.keys(), at.keys()};
  }

 private:
  Index each_ = 0;
  Tensor<T> room_;
  T* data_ = nullptr;
};

/// Where the blocks of one head add to a gradient of its keys or values: the first one to come
/// writes, if it sees all keys, so that nothing is zeroed only to be added to.
template <Real T>
class KeyGradient {
 public:
  /// With only_seen, products take what is seen alone.
  KeyGradient(Mat<T> x, bool first, bool only_seen) : x_(x), first_(first), only_seen_(only_seen) {}
  KeyGradient(const KeyGradient&) = delete;
  KeyGradient& operator=(const KeyGradient&) = delete;
  /// With no block at all, x is zeros.
  ~KeyGradient() {
    if (first_ && x_.data != nullptr) fill(x_, T(0));
  }
  /// x += alpha a^T b, in the rows of the block's keys; sees(i, j) of the rows of b and keys.
  template <class Sees>
  void add(T alpha, const Block& at, Mat<const T> a, Mat<const T> b, Sees sees) {
    const bool writes = first_ && at.keys() == x_.rows;
    if (first_ && !writes) fill(x_, T(0));
    first_ = false;
    const T beta = writes ? T(0) : T(1);
    if (only_seen_)
      product_of_seen<T>(alpha, a.t(), b, beta, keys_of(x_, at),
                         [&](Index j, Index i) { return sees(i, j); });
    else
      gemm_tile<T>(alpha, a.t(), b, beta, keys_of(x_, at));
  }

 private:
  Mat<T> x_;
  bool first_, only_seen_;
};

}  // namespace

template <Real T>
void attention(const AttentionPlan<T>& plan, const T* q, const T* k, const T* v, T* y,
               const Saved<T>& saved) {
  const Scratch<T> scratch(plan);
  for_each_head(plan, [&](const Head<T>& head) {
    T* kept = head.part(saved.kept, plan.kept_size());
    for (const Block& at : head.blocks()) {
      const Mat<T> room = scratch(at);
      const Mat<T> p =
          kept == nullptr ? room : Mat<T>{kept + at.at, at.rows(), at.keys(), at.keys()};
      head.pattern(at, head.q(q), head.k(k), p, head.part(saved.stats, plan.queries));
      head.apply(at, head.to_apply(at, p, room), head.v(v), head.y(y));
    }
  });
}

template <Real T>
void attention_pattern(const AttentionPlan<T>& plan, const T* q, const T* k, T* p,
                       RowStats<T>* stats) {
  for_each_head(plan, [&](const Head<T>& head) {
    for (const Block& at : head.blocks()) {
      head.pattern(at, head.q(q), head.k(k), head.of_whole(at, p), head.part(stats, plan.queries));
      for (Index t = at.begin; t < at.end; ++t) {
        T* row = head.part(p, plan.queries * plan.keys) + t * plan.keys;
        std::fill(row, row + at.first, T(0));
        std::fill(row + at.last, row + plan.keys, T(0));
      }
    }
  });
}

template <Real T>
void attention_apply(const AttentionPlan<T>& plan, const T* p, const T* v, T* y) {
  const Scratch<T> scratch(plan);
  for_each_head(plan, [&](const Head<T>& head) {
    for (const Block& at : head.blocks())
      head.apply(at, head.to_apply(at, head.of_whole(at, p), scratch(at)), head.v(v), head.y(y));
  });
}

template <Real T>
void attention_backward(const AttentionPlan<T>& plan, const T* q, const T* k, const T* v,
                        const Saved<T>& saved, const T* dy, T* dq, T* dk, T* dv) {
  const Scratch<T> scratch_p(plan), scratch_d(plan);
  const bool through_scores = dq != nullptr || dk != nullptr;
  const auto back = [&](const Head<T>& head, bool only_seen) {
    T* kept = head.part(saved.kept, plan.kept_size());
    KeyGradient<T> to_k(head.k(dk), head.first_of_group(), only_seen),
        to_v(head.v(dv), head.first_of_group(), only_seen);
    // From the last block, which sees all keys if there is one that does.
    for (auto block = head.blocks().rbegin(); block != head.blocks().rend(); ++block) {
      const Block& at = *block;
      const auto sees = [&](Index i, Index j) { return head.sees(at.begin + i, at.first + j); };
      const Mat<T> d = scratch_d(at);
      Mat<T> p = scratch_p(at);
      if (kept == nullptr)
        head.pattern_again(at, head.q(q), head.k(k), p, head.part(saved.stats, plan.queries));
      else
        p.data = kept + at.at;
      const Mat<const T> up = rows_of(head.y(dy), at);
      if (dv != nullptr) to_v.add(1, at, head.to_apply(at, p, d), up, sees);  // dv += p^T dy
      if (!through_scores) continue;
      gemm_tile<T>(1, up, keys_of(head.v(v), at).t(), 0, d);  // dp = dy v^T
      if (plan.dropout > 0) head.drop(at, d, d);
      head.for_each_row(at, d, [&](T* row, Index n, Index t) {
        if (only_seen) head.strike(t, row);
        softmax_backward(p.data + (row - d.data), row, n);  // ds = p (dp - <p,dp>)
        if (only_seen) head.strike(t, row);                 // <p,dp> may be NaN
      });
      if (dq != nullptr && only_seen)
        product_of_seen<T>(plan.scale, d, keys_of(head.k(k), at), 0, rows_of(head.q(dq), at), sees);
      else if (dq != nullptr)
        gemm_tile<T>(plan.scale, d, keys_of(head.k(k), at), 0, rows_of(head.q(dq), at));
      if (dk != nullptr) to_k.add(plan.scale, at, d, rows_of(head.q(q), at), sees);
    }
  };
  for_each_group(plan, back, [&](const Head<T>& head) {
    return finite_or_null(head.q(dq)) && finite_or_null(head.k(dk)) && finite_or_null(head.v(dv));
  });
}

template <Real T>
void attention_apply_backward(const AttentionPlan<T>& plan, const T* p, const T* dy, T* dv) {
  const Scratch<T> scratch(plan);
  const auto back = [&](const Head<T>& head, bool only_seen) {
    KeyGradient<T> to_v(head.v(dv), head.first_of_group(), only_seen);
    for (auto block = head.blocks().rbegin(); block != head.blocks().rend(); ++block) {
      const Block& at = *block;
      const Mat<const T> applied = head.to_apply(at, head.of_whole(at, p), scratch(at));
      to_v.add(1, at, applied, rows_of(head.y(dy), at),
               [&](Index i, Index j) { return applied.data[i * applied.ld + j] != 0; });
    }
  };
  for_each_group(plan, back, [&](const Head<T>& head) { return finite_or_null(head.v(dv)); });
}

#define HEADWISE_INSTANTIATE(T)                                                                   \
  template void attention(const AttentionPlan<T>&, const T*, const T*, const T*, T*,              \
                          const Saved<T>&);                                                       \
  template void attention_pattern(const AttentionPlan<T>&, const T*, const T*, T*, RowStats<T>*); \
  template void attention_apply(const AttentionPlan<T>&, const T*, const T*, T*);                 \
  template void attention_backward(const AttentionPlan<T>&, const T*, const T*, const T*,         \
                                   const Saved<T>&, const T*, T*, T*, T*);                        \
  template void attention_apply_backward(const AttentionPlan<T>&, const T*, const T*, T*);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise::kernels
