#include "headwise/study/lens.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "headwise/core/parallel.hpp"
#include "headwise/study/recording.hpp"
#include "kernels/kernels.hpp"

namespace headwise::study {
namespace {

/// The `most` likeliest of V tokens.
template <Real T>
std::vector<Guess> likeliest(const T* logits, Index v, Index most) {
  std::vector<Id> order(static_cast<std::size_t>(v));
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + std::min(most, v);
  std::partial_sort(order.begin(), end, order.end(), [&](Id a, Id b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  });
  const double all = kernels::log_sum_exp(logits, v);
  std::vector<Guess> top;
  for (auto id = order.begin(); id != end; ++id)
    top.push_back({*id, std::exp(static_cast<double>(logits[*id]) - all)});
  return top;
}

template <Real T>
LensLayer read(const Decoder<T>& model, std::string name, const Tensor<T>& stream, Index most) {
  const Tensor<T> logits = model.resume({}, model.config.layers, Var<T>(stream)).value();
  const Index rows = logits.shape().rows(), v = logits.shape().last();
  LensLayer layer{std::move(name), std::vector<std::vector<Guess>>(static_cast<std::size_t>(rows))};
  parallel_for(rows, 1, [&](Index i, Index) {
    layer.top[static_cast<std::size_t>(i)] = likeliest(logits.data() + i * v, v, most);
  });
  return layer;
}

}  // namespace

template <Real T>
std::vector<LensLayer> logit_lens(const Decoder<T>& model, const Ids& ids, Index most) {
  require<UsageError>(most >= 1, "logit_lens: {} tokens are not at least 1", most);
  const auto after = [](Index i) { return fmt::format("blocks.{}.resid_post", i); };
  std::set<std::string, std::less<>> names{"embed"};
  for (Index i = 0; i < model.config.layers; ++i) names.insert(after(i));
  Recording<T> seen(names);
  model({.probe = &seen}, ids);
  std::vector<LensLayer> layers{read(model, "embed", seen["embed"], most)};
  for (Index i = 0; i < model.config.layers; ++i)
    layers.push_back(read(model, fmt::format("after {}", i), seen[after(i)], most));
  return layers;
}

template std::vector<LensLayer> logit_lens(const Decoder<float>&, const Ids&, Index);
template std::vector<LensLayer> logit_lens(const Decoder<double>&, const Ids&, Index);

}  // namespace headwise::study
