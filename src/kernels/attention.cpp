#include "kernels/attention.hpp"

#include <algorithm>
#include <limits>

#include "headwise/core/gemm.hpp"
#include "headwise/core/parallel.hpp"
#include "kernels/dropout.hpp"

namespace headwise::kernels {
namespace {

/// Query rows [begin, end) and how many of the first keys any of them sees.
struct Block {
  Index begin, end, keys;
  [[nodiscard]] Index rows() const { return end - begin; }
};

/// Measured: short contexts gain from skipping more of the masked half, long ones from fat
/// products.
Index block_rows(Index queries) { return queries <= 64 ? 32 : queries < 2048 ? 64 : 128; }

/// The window of one head into a (B,T,heads*width) tensor.
template <class T>
Mat<T> head(T* x, Index b, Index h, Index rows, Index heads, Index width) {
  const Index c = heads * width;
  return {x + b * rows * c + h * width, rows, width, c};
}

template <class T>
Mat<T> rows_of(Mat<T> x, const Block& at) {
  return x.block(at.begin, 0, at.rows(), x.cols);
}

template <class T>
Mat<T> first(Mat<T> x, Index rows) {
  return x.block(0, 0, rows, x.cols);
}

/// One head of one sequence.
template <Real T>
class Head {
 public:
  Head(const AttentionPlan<T>& plan, Index b, Index h)
      : plan_(plan), b_(b), h_(h), kv_(h / (plan.heads / plan.kv_heads)) {}

  [[nodiscard]] Mat<const T> q(const T* x) const {
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
  [[nodiscard]] Mat<T> dq(T* x) const {
    return head(x, b_, h_, plan_.queries, plan_.heads, plan_.d);
  }
  /// This head's rows of statistics, or of a pattern with plan.keys columns.
  template <class U>
  [[nodiscard]] U* rows(U* x, Index columns) const {
    return x == nullptr ? x : x + (b_ * plan_.heads + h_) * plan_.queries * columns;
  }

  template <class F>
  void for_each_block(F f) const {
    const Index step = block_rows(plan_.queries);
    for (Index t = 0; t < plan_.queries; t += step) {
      const Index end = std::min(t + step, plan_.queries);
      f(Block{t, end, plan_.visible(end - 1)});
    }
  }

  /// p = scale q k^T with what the mask strikes at -inf, for the block's rows and keys.
  void scores(const Block& at, Mat<const T> q, Mat<const T> k, Mat<T> p) const {
    gemm_tile<T>(plan_.scale, rows_of(q, at), first(k, at.keys).t(), 0, p);
    if (plan_.mask.allow == nullptr) return;
    for (Index i = 0; i < at.rows(); ++i) {
      const std::uint8_t* allow = plan_.mask.allow + (at.begin + i) * plan_.keys;
      for (Index j = 0; j < at.keys; ++j)
        if (allow[j] == 0) p.data[i * p.ld + j] = -std::numeric_limits<T>::infinity();
    }
  }

  /// Calls f(row, visible keys, t) for the rows of a block, and zeroes what they may not see.
  template <class F>
  void for_each_row(const Block& at, Mat<T> p, F f) const {
    for (Index i = 0; i < at.rows(); ++i) {
      T* row = p.data + i * p.ld;
      const Index n = plan_.visible(at.begin + i);
      f(row, n, at.begin + i);
      std::fill(row + n, row + at.keys, T(0));
    }
  }

  void pattern(const Block& at, Mat<const T> q, Mat<const T> k, Mat<T> p, RowStats<T>* s) const {
    scores(at, q, k, p);
    for_each_row(at, p, [&](T* row, Index n, Index t) {
      const RowStats<T> found = softmax(row, n);
      if (s != nullptr) s[t] = found;
    });
  }

  void pattern_again(const Block& at, Mat<const T> q, Mat<const T> k, Mat<T> p,
                     const RowStats<T>* s) const {
    scores(at, q, k, p);
    for_each_row(at, p, [&](T* row, Index n, Index t) { softmax_again(row, n, s[t]); });
  }

  /// out = dropout of p, entry (b,h,t,s) by a draw of its own. out may be p.
  void drop(const Block& at, Mat<const T> p, Mat<T> out) const {
    const auto blocks = static_cast<std::uint64_t>((plan_.keys + 3) / 4);  // of four draws, a row
    const auto row = static_cast<std::uint64_t>((b_ * plan_.heads + h_) * plan_.queries + at.begin);
    for (Index i = 0; i < at.rows(); ++i)
      kernels::drop(*plan_.random,
                    plan_.random->position() / 4 + (row + static_cast<std::uint64_t>(i)) * blocks,
                    plan_.dropout, p.data + i * p.ld, out.data + i * out.ld, at.keys);
  }

  /// The block's rows of a whole pattern (B,H,T,S), dropped into `room` if there is dropout.
  Mat<const T> rows_to_apply(const Block& at, const T* whole, Mat<T> room) const {
    const T* first = rows(whole, plan_.keys) + at.begin * plan_.keys;
    const Mat<const T> p = {first, at.rows(), at.keys, plan_.keys};
    if (plan_.dropout == 0) return p;
    drop(at, p, room);
    return room;
  }

 private:
  const AttentionPlan<T>& plan_;
  Index b_, h_, kv_;
};

/// Calls f(head) for every head, in parallel.
template <Real T, class F>
void for_each_head(const AttentionPlan<T>& plan, F f) {
  parallel_for(plan.batch * plan.heads, 1,
               [&](Index i, Index) { f(Head<T>(plan, i / plan.heads, i % plan.heads)); });
}

/// Calls f(head) for every head, those that share a key head one after the other: they add to the
/// same places.
template <Real T, class F>
void for_each_group(const AttentionPlan<T>& plan, F f) {
  const Index group = plan.heads / plan.kv_heads;
  parallel_for(plan.batch * plan.kv_heads, 1, [&](Index i, Index) {
    const Index b = i / plan.kv_heads, h = i % plan.kv_heads * group;
    for (Index j = 0; j < group; ++j) f(Head<T>(plan, b, h + j));
  });
}

/// Room for one block of a pattern.
template <Real T>
class Scratch {
 public:
  explicit Scratch(const AttentionPlan<T>& plan)
      : ld_(plan.keys),
        room_(Tensor<T>::uninitialized(
            {std::min(block_rows(plan.queries), plan.queries), plan.keys})),
        data_(room_.data()) {}
  Mat<T> operator()(const Block& at) const { return {data_, at.rows(), at.keys, ld_}; }

 private:
  Index ld_;
  Tensor<T> room_;
  T* data_;
};

}  // namespace

template <Real T>
void attention(const AttentionPlan<T>& plan, const T* q, const T* k, const T* v, T* y,
               RowStats<T>* stats) {
  for_each_head(plan, [&](const Head<T>& head) {
    const Scratch<T> scratch(plan);
    head.for_each_block([&](const Block& at) {
      const Mat<T> p = scratch(at);
      head.pattern(at, head.q(q), head.k(k), p, head.rows(stats, 1));
      if (plan.dropout > 0) head.drop(at, p, p);
      gemm_tile<T>(1, p, first(head.v(v), at.keys), 0, rows_of(head.y(y), at));
    });
  });
}

template <Real T>
void attention_pattern(const AttentionPlan<T>& plan, const T* q, const T* k, T* p,
                       RowStats<T>* stats) {
  for_each_head(plan, [&](const Head<T>& head) {
    head.for_each_block([&](const Block& at) {
      T* rows = head.rows(p, plan.keys) + at.begin * plan.keys;
      const Mat<T> whole = {rows, at.rows(), plan.keys, plan.keys};
      head.pattern(at, head.q(q), head.k(k), whole.block(0, 0, at.rows(), at.keys),
                   head.rows(stats, 1));
      for (Index i = 0; i < at.rows(); ++i)
        std::fill(rows + i * plan.keys + at.keys, rows + (i + 1) * plan.keys, T(0));
    });
  });
}

template <Real T>
void attention_apply(const AttentionPlan<T>& plan, const T* p, const T* v, T* y) {
  for_each_head(plan, [&](const Head<T>& head) {
    const Scratch<T> scratch(plan);
    head.for_each_block([&](const Block& at) {
      const Mat<const T> rows = head.rows_to_apply(at, p, scratch(at));
      gemm_tile<T>(1, rows, first(head.v(v), at.keys), 0, rows_of(head.y(y), at));
    });
  });
}

template <Real T>
void attention_backward(const AttentionPlan<T>& plan, const T* q, const T* k, const T* v,
                        const RowStats<T>* stats, const T* dy, T* dq, T* dk, T* dv) {
  for_each_group(plan, [&](const Head<T>& head) {
    const Scratch<T> scratch_p(plan), scratch_d(plan);
    head.for_each_block([&](const Block& at) {
      const Mat<T> p = scratch_p(at), d = scratch_d(at);
      const Mat<const T> up = rows_of(head.y(dy), at);
      head.pattern_again(at, head.q(q), head.k(k), p, head.rows(stats, 1));
      if (plan.dropout > 0) {
        head.drop(at, p, d);
        gemm_tile<T>(1, Mat<const T>(d).t(), up, 1, first(head.v(dv), at.keys));
      } else {
        gemm_tile<T>(1, Mat<const T>(p).t(), up, 1, first(head.v(dv), at.keys));  // dv += p^T dy
      }
      gemm_tile<T>(1, up, first(head.v(v), at.keys).t(), 0, d);  // dp = dy v^T
      if (plan.dropout > 0) head.drop(at, d, d);
      head.for_each_row(at, d, [&](T* row, Index n, Index t) {
        softmax_backward(p.data + (t - at.begin) * p.ld, row, n);  // ds = p (dp - <p,dp>)
      });
      gemm_tile<T>(plan.scale, d, first(head.k(k), at.keys), 0, rows_of(head.dq(dq), at));
      gemm_tile<T>(plan.scale, Mat<const T>(d).t(), rows_of(head.q(q), at), 1,
                   first(head.k(dk), at.keys));
    });
  });
}

template <Real T>
void attention_apply_backward(const AttentionPlan<T>& plan, const T* p, const T* dy, T* dv) {
  for_each_group(plan, [&](const Head<T>& head) {
    const Scratch<T> scratch(plan);
    head.for_each_block([&](const Block& at) {
      const Mat<const T> rows = head.rows_to_apply(at, p, scratch(at));
      gemm_tile<T>(1, rows.t(), rows_of(head.y(dy), at), 1, first(head.v(dv), at.keys));
    });
  });
}

#define HEADWISE_INSTANTIATE(T)                                                                   \
  template void attention(const AttentionPlan<T>&, const T*, const T*, const T*, T*,              \
                          RowStats<T>*);                                                          \
  template void attention_pattern(const AttentionPlan<T>&, const T*, const T*, T*, RowStats<T>*); \
  template void attention_apply(const AttentionPlan<T>&, const T*, const T*, T*);                 \
  template void attention_backward(const AttentionPlan<T>&, const T*, const T*, const T*,         \
                                   const RowStats<T>*, const T*, T*, T*, T*);                     \
  template void attention_apply_backward(const AttentionPlan<T>&, const T*, const T*, T*);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise::kernels
