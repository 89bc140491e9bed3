#include "headwise/train/adamw.hpp"

#include <algorithm>

#include "headwise/core/parallel.hpp"
#include "kernels/kernels.hpp"

namespace headwise {

template <Real T>
AdamW<T>::AdamW(const AdamWOptions& options) : options_(options) {
  for (const double beta : {options.beta1, options.beta2})
    require<UsageError>(beta >= 0 && static_cast<T>(beta) < 1,
                        "adamw: beta {} is not in [0, 1) in this precision", beta);
}

namespace {

/// A run of elements of one of several tensors.
struct Chunk {
  std::size_t tensor;
  Index begin, end;
};

/// The chunks of tensors of the given sizes, for one parallel loop over all of them: most of a
/// model's tensors are small.
std::vector<Chunk> chunks_of(const std::vector<Index>& sizes) {
  constexpr Index kChunk = 16 * 1024;
  std::vector<Chunk> chunks;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    for (Index at = 0; at < sizes[i]; at += kChunk)
      chunks.push_back({i, at, std::min(at + kChunk, sizes[i])});
  return chunks;
}

}  // namespace

template <Real T>
void AdamW<T>::update(const std::vector<Update>& updates, double lr, double grad_scale) const {
  struct Job {
    kernels::AdamwStep<T> step;
    const T* grad;
    T *mean, *square, *value;
  };
  const AdamWOptions& o = options_;
  // As precision T knows them, so that the bias correction undoes just what the averages do.
  const auto beta1 = static_cast<T>(o.beta1), beta2 = static_cast<T>(o.beta2);
  std::vector<Index> sizes;
  for (const auto& [m, p] : updates) {
    require(p->grad.shape() == p->value.shape(), "adamw: gradient {} of a parameter {}",
            p->grad.shape(), p->value.shape());
    sizes.push_back(p->value.size());
  }
  std::vector<Job> jobs;
  for (const auto& [m, p] : updates) {
    if (m->mean.empty()) {
      m->mean = Tensor<T>::zeros(p->value.shape());
      m->square = Tensor<T>::zeros(p->value.shape());
    }
    const auto t = static_cast<double>(++m->updates);
    jobs.push_back({{.grad_scale = static_cast<T>(grad_scale),
                     .beta1 = beta1,
                     .beta2 = beta2,
                     .eps = static_cast<T>(o.eps),
                     .keep = static_cast<T>(is_decayed(*p) ? 1 - lr * o.weight_decay : 1),
                     .rate = static_cast<T>(lr / (1 - std::pow(static_cast<double>(beta1), t))),
                     .unbias2 = static_cast<T>(1 / (1 - std::pow(static_cast<double>(beta2), t)))},
                    p->grad.values().data(),
                    m->mean.data(),
                    m->square.data(),
                    p->value.data()});
  }
  const std::vector<Chunk> chunks = chunks_of(sizes);
  parallel_for(static_cast<Index>(chunks.size()), 1, [&](Index i, Index) {
    const Chunk& c = chunks[static_cast<std::size_t>(i)];
    const Job& j = jobs[c.tensor];
    kernels::adamw(j.step, j.grad + c.begin, j.mean + c.begin, j.square + c.begin,
                   j.value + c.begin, c.end - c.begin);
  });
}

template <Real T>
double squared_norm(const Tensor<T>& x) {
  constexpr Index kChunk = 16 * 1024;
  std::vector<double> parts(static_cast<std::size_t>((x.size() + kChunk - 1) / kChunk));
  const T* in = x.data();
  parallel_for(x.size(), kChunk, [&](Index begin, Index end) {
    parts[static_cast<std::size_t>(begin / kChunk)] = kernels::sum_squares(in + begin, end - begin);
  });
  double total = 0;
  for (const double part : parts) total += part;
  return total;
}

template class AdamW<float>;
template class AdamW<double>;
template double squared_norm(const Tensor<float>&);
template double squared_norm(const Tensor<double>&);

}  // namespace headwise
