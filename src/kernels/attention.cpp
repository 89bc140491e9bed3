#include "kernels/attention.hpp"

#include <algorithm>
#include <limits>

#include "headwise/core/gemm.hpp"
#include "headwise/core/parallel.hpp"
#include "kernels/dropout.hpp"

namespace headwise::kernels {
namespace {

constexpr double kStruck = -std::numeric_limits<double>::infinity();

/// Measured: short contexts gain from skipping more of the masked half, long ones from fat
/// products.
Index block_rows(Index queries) {
  return queries <= 128 ? 32 : queries <= 512 ? 48 : queries < 2048 ? 64 : 128;
}

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
      if (s != nullptr) s[t] = found;
    });
  }
  /// The same from the statistics that it left: the same bits.
  void pattern_again(const Block& at, Mat<const T> q, Mat<const T> k, Mat<T> p,
                     const RowStats<T>* s) const {
    scores(at, q, k, p);
    for_each_row(at, p, [&](T* row, Index n, Index t) { softmax_again(row, n, s[t]); });
  }

  /// Calls f(row from its first seen key, their number, t) for the rows of a block, and zeroes what
  /// they may not see.
  template <class F>
  void for_each_row(const Block& at, Mat<T> p, F f) const {
    for (Index i = 0; i < at.rows(); ++i) {
      T* row = p.data + i * p.ld;
      const SeenKeys& seen = view_.seen[static_cast<std::size_t>(at.begin + i)];
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

 private:
  void scores(const Block& at, Mat<const T> q, Mat<const T> k, Mat<T> p) const {
    gemm_tile<T>(plan_.scale, rows_of(q, at), keys_of(k, at).t(), 0, p);
    for (Index t = at.begin; t < at.end; ++t) {
      const SeenKeys& seen = view_.seen[static_cast<std::size_t>(t)];
      if (seen.count() == 0) continue;
      const double* bias = plan_.bias.row(b_, h_, t, plan_.keys);
      mask_row(seen, bias, p.data + (t - at.begin) * p.ld + seen.first - at.first);
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
  KeyGradient(Mat<T> x, bool first) : x_(x), first_(first) {}
  KeyGradient(const KeyGradient&) = delete;
  KeyGradient& operator=(const KeyGradient&) = delete;
  /// With no block at all, x is zeros.
  ~KeyGradient() {
    if (first_ && x_.data != nullptr) fill(x_, T(0));
  }
  /// x += alpha a b, in the rows of the block's keys.
  void add(T alpha, const Block& at, Mat<const T> a, Mat<const T> b) {
    const bool writes = first_ && at.keys() == x_.rows;
    if (first_ && !writes) fill(x_, T(0));
    first_ = false;
    gemm_tile<T>(alpha, a, b, writes ? T(0) : T(1), keys_of(x_, at));
  }

 private:
  Mat<T> x_;
  bool first_;
};

/// Asks the mask about blocks of query rows.
std::vector<Block> cut(const std::vector<SeenKeys>& seen, Index queries, Index keys) {
  const Index step = block_rows(queries);
  std::vector<Block> blocks;
  Index at = 0;
  for (Index begin = 0; begin < queries; begin += step) {
    Block b{.begin = begin, .end = std::min(begin + step, queries), .at = at};
    Index first = keys, last = 0;
    for (Index t = b.begin; t < b.end; ++t) {
      const SeenKeys& row = seen[static_cast<std::size_t>(t)];
      if (row.count() == 0) continue;
      first = std::min(first, row.first);
      last = std::max(last, row.end);
    }
    b.last = last;
    b.first = last == 0 ? 0 : first / 16 * 16;  // whole vectors, and whole blocks of random draws
    at += b.rows() * b.keys();
    blocks.push_back(b);
  }
  return blocks;
}

Index count_allowed(const SeenKeys& row) {
  return row.allow == nullptr ? row.count()
                              : std::count_if(row.allow + row.first, row.allow + row.end,
                                              [](std::uint8_t may_look) { return may_look != 0; });
}

}  // namespace

template <Real T>
void mask_row(const SeenKeys& seen, const double* bias, T* row) {
  if (bias != nullptr)
    for (Index s = seen.first; s < seen.end; ++s) {
      T& score = row[s - seen.first];
      score = static_cast<T>(bias[s]) + (bias[s] == kStruck ? T(0) : score);  // which may be NaN
    }
  if (seen.allow != nullptr)
    for (Index s = seen.first; s < seen.end; ++s)
      if (seen.allow[s] == 0) row[s - seen.first] = static_cast<T>(kStruck);
}

template <Real T>
void strike(const SeenKeys& seen, const double* bias, T* row) {
  for (Index s = seen.first; s < seen.end; ++s)
    if ((bias != nullptr && bias[s] == kStruck) || (seen.allow != nullptr && seen.allow[s] == 0))
      row[s - seen.first] = 0;
}

template <Real T>
void AttentionPlan<T>::show(std::vector<std::vector<SeenKeys>> seen) {
  views.clear();
  for (std::vector<SeenKeys>& each : seen) {
    std::vector<Block> blocks = cut(each, queries, keys);
    views.push_back({std::move(each), std::move(blocks)});
  }
}

template <Real T>
Index AttentionPlan<T>::kept_size() const {
  Index most = 0;
  for (const View& view : views)
    if (!view.blocks.empty()) {
      const Block& last = view.blocks.back();
      most = std::max(most, last.at + last.rows() * last.keys());
    }
  return most;
}

template <Real T>
Index AttentionPlan<T>::pairs() const {
  Index count = 0;
  for (const View& view : views)
    for (const SeenKeys& row : view.seen) count += count_allowed(row);
  return views.size() == 1 ? batch * count : count;
}

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
      gemm_tile<T>(1, head.to_apply(at, p, room), keys_of(head.v(v), at), 0,
                   rows_of(head.y(y), at));
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
      gemm_tile<T>(1, head.to_apply(at, head.of_whole(at, p), scratch(at)), keys_of(head.v(v), at),
                   0, rows_of(head.y(y), at));
  });
}

template <Real T>
void attention_backward(const AttentionPlan<T>& plan, const T* q, const T* k, const T* v,
                        const Saved<T>& saved, const T* dy, T* dq, T* dk, T* dv) {
  const Scratch<T> scratch_p(plan), scratch_d(plan);
  const bool through_scores = dq != nullptr || dk != nullptr;
  for_each_group(plan, [&](const Head<T>& head) {
    T* kept = head.part(saved.kept, plan.kept_size());
    KeyGradient<T> to_k(head.k(dk), head.first_of_group()), to_v(head.v(dv), head.first_of_group());
    // From the last block, which sees all keys if there is one that does.
    for (auto block = head.blocks().rbegin(); block != head.blocks().rend(); ++block) {
      const Block& at = *block;
      const Mat<T> d = scratch_d(at);
      Mat<T> p = scratch_p(at);
      if (kept == nullptr)
        head.pattern_again(at, head.q(q), head.k(k), p, head.part(saved.stats, plan.queries));
      else
        p.data = kept + at.at;
      const Mat<const T> up = rows_of(head.y(dy), at);
      if (dv != nullptr) to_v.add(1, at, head.to_apply(at, p, d).t(), up);  // dv += p^T dy
      if (!through_scores) continue;
      gemm_tile<T>(1, up, keys_of(head.v(v), at).t(), 0, d);  // dp = dy v^T
      if (plan.dropout > 0) head.drop(at, d, d);
      head.for_each_row(at, d, [&](T* row, Index n, Index) {
        softmax_backward(p.data + (row - d.data), row, n);  // ds = p (dp - <p,dp>)
      });
      if (dq != nullptr)
        gemm_tile<T>(plan.scale, d, keys_of(head.k(k), at), 0, rows_of(head.q(dq), at));
      if (dk != nullptr) to_k.add(plan.scale, at, Mat<const T>(d).t(), rows_of(head.q(q), at));
    }
  });
}

template <Real T>
void attention_apply_backward(const AttentionPlan<T>& plan, const T* p, const T* dy, T* dv) {
  const Scratch<T> scratch(plan);
  for_each_group(plan, [&](const Head<T>& head) {
    KeyGradient<T> to_v(head.v(dv), head.first_of_group());
    for (auto block = head.blocks().rbegin(); block != head.blocks().rend(); ++block) {
      const Block& at = *block;
      to_v.add(1, at, head.to_apply(at, head.of_whole(at, p), scratch(at)).t(),
               rows_of(head.y(dy), at));
    }
  });
}

#define HEADWISE_INSTANTIATE(T)                                                                   \
  template struct AttentionPlan<T>;                                                               \
  template void mask_row(const SeenKeys&, const double*, T*);                                     \
  template void strike(const SeenKeys&, const double*, T*);                                       \
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
