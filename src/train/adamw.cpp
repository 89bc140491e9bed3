#include "headwise/train/adamw.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "headwise/core/parallel.hpp"
#include "kernels/kernels.hpp"

namespace headwise {
namespace {

template <Real T>
void require_factor(std::string_view what, double x) {
  require<UsageError>(x >= 0 && std::isfinite(static_cast<T>(x)),
                      "adamw: {} {} is not a finite number >= 0 in this precision", what, x);
}

/// A parameter's moments have its shape, or are not there yet.
template <Real T>
void require_fit(const std::string& name, const Param<T>& p, const Moments<T>& m) {
  for (const Tensor<T>* x : {&m.mean, &m.square})
    require(x->shape() == p.value.shape(), "adamw: moments {} of the parameter '{}' of shape {}",
            x->shape(), name, p.value.shape());
}

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
AdamW<T>::AdamW(const AdamWOptions& options) : options_(options) {
  for (const double beta : {options.beta1, options.beta2})
    require<UsageError>(beta >= 0 && static_cast<T>(beta) < 1,
                        "adamw: beta {} is not in [0, 1) in this precision", beta);
  require_factor<T>("weight decay", options.weight_decay);
  require_factor<T>("eps", options.eps);
  require<UsageError>(static_cast<T>(options.eps) > 0, "adamw: eps {} is 0 in this precision",
                      options.eps);
}

template <Real T>
void AdamW<T>::set(const std::string& name, const Param<T>& p, Moments<T> moments) {
  require_fit(name, p, moments);
  moments_.insert_or_assign(p.id.value(), std::move(moments));
}

template <Real T>
void AdamW<T>::update(const std::vector<Update>& updates, double lr, double grad_scale) {
  struct Job {
    const Update* of;
    kernels::AdamwStep<T> step;
    const T* grad;
    T *mean, *square, *value;
  };
  const AdamWOptions& o = options_;
  // As precision T knows them, so that the bias correction undoes just what the averages do.
  const auto beta1 = static_cast<T>(o.beta1), beta2 = static_cast<T>(o.beta2);
  require_factor<T>("learning rate", lr);
  require_factor<T>("factor of the gradient", grad_scale);
  for (const auto& [name, p] : updates) {
    require(p->grad.shape() == p->value.shape(), "adamw: gradient {} of the parameter '{}' {}",
            p->grad.shape(), name, p->value.shape());
    if (const Moments<T>* m = find(*p)) require_fit(name, *p, *m);
  }
  std::vector<Job> jobs;
  std::vector<Index> sizes;
  std::unordered_set<const Param<T>*> seen;
  for (const Update& u : updates) {
    Param<T>& p = *u.param;
    if (!seen.insert(&p).second) continue;
    Moments<T>& m = moments_[p.id.value()];
    if (m.mean.empty()) {
      m.mean = Tensor<T>::zeros(p.value.shape());
      m.square = Tensor<T>::zeros(p.value.shape());
    }
    const auto t = static_cast<double>(++m.updates);
    jobs.push_back({&u,
                    {.grad_scale = static_cast<T>(grad_scale),
                     .beta1 = beta1,
                     .beta2 = beta2,
                     .eps = static_cast<T>(o.eps),
                     .keep = static_cast<T>(is_decayed(p) ? 1 - lr * o.weight_decay : 1),
                     .rate = static_cast<T>(lr / (1 - std::pow(static_cast<double>(beta1), t))),
                     .unbias2 = static_cast<T>(1 / (1 - std::pow(static_cast<double>(beta2), t)))},
                    p.grad.values().data(),
                    m.mean.data(),
                    m.square.data(),
                    p.value.data()});
    sizes.push_back(p.value.size());
  }
  const std::vector<Chunk> chunks = chunks_of(sizes);
  std::vector<char> finite(chunks.size());
  parallel_for(static_cast<Index>(chunks.size()), 1, [&](Index i, Index) {
    const Chunk& c = chunks[static_cast<std::size_t>(i)];
    const Job& j = jobs[c.tensor];
    finite[static_cast<std::size_t>(i)] =
        kernels::adamw(j.step, j.grad + c.begin, j.mean + c.begin, j.square + c.begin,
                       j.value + c.begin, c.end - c.begin);
  });
  for (std::size_t i = 0; i < chunks.size(); ++i)
    require<NotFinite>(finite[i] != 0,
                       "adamw: after the update by learning rate {} '{}' is not finite", lr,
                       jobs[chunks[i].tensor].of->name);
}

template <Real T>
double squared_norm(const Tensor<T>& x) {
  constexpr Index kBlock = 16 * 1024;
  std::vector<double> parts(static_cast<std::size_t>((x.size() + kBlock - 1) / kBlock));
  const T* in = x.data();
  parallel_for(x.size(), kBlock, [&](Index begin, Index end) {
    parts[static_cast<std::size_t>(begin / kBlock)] = kernels::sum_squares(in + begin, end - begin);
  });
  double total = 0;
  for (const double part : parts) total += part;
  return total;
}

double clip_factor(double norm, double max_norm) {
  for (const auto& [name, x] : {std::pair{"norm", norm}, {"largest norm", max_norm}})
    require<UsageError>(x >= 0 && std::isfinite(x), "clip: {} {} is not a finite number >= 0", name,
                        x);
  return max_norm > 0 && norm > max_norm ? max_norm / norm : 1;
}

template class AdamW<float>;
template class AdamW<double>;
template double squared_norm(const Tensor<float>&);
template double squared_norm(const Tensor<double>&);

}  // namespace headwise
