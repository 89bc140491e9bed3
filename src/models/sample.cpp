#include "headwise/models/sample.hpp"

#include <algorithm>
#include <cmath>

namespace headwise {

void check_temperature(double temperature) {
  require<UsageError>(std::isfinite(temperature) && temperature >= 0,
                      "--temperature: {} is not a finite number from 0 up", temperature);
}

template <Real T>
Id draw(std::span<const T> logits, double temperature, Rng& rng) {
  check_temperature(temperature);
  const auto top = std::max_element(logits.begin(), logits.end());  // -inf: never drawn
  require<Error>(std::none_of(logits.begin(), logits.end(), [](T x) { return std::isnan(x); }) &&
                     std::isfinite(*top),
                 "sample: the model's logits are not finite");
  if (temperature == 0) return static_cast<Id>(top - logits.begin());
  std::vector<double> upto;  // cumulated, unnormalised probabilities
  double total = 0;
  for (const T x : logits)
    upto.push_back(total +=
                   std::exp((static_cast<double>(x) - static_cast<double>(*top)) / temperature));
  const double at = rng.uniform() * total;
  const auto found = std::upper_bound(upto.begin(), upto.end() - 1, at);
  return static_cast<Id>(found - upto.begin());
}

template <Real T>
std::vector<Id> sample(const Decoder<T>& model, std::vector<Id> prompt, Index count,
                       double temperature, Rng& rng, const std::function<bool(Id)>& each) {
  require<UsageError>(!prompt.empty(), "sample: the prompt is empty");
  const std::size_t start = prompt.size();
  const Ctx<T> ctx;
  for (Index i = 0; i < count; ++i) {
    const Index seen = std::min<Index>(static_cast<Index>(prompt.size()), model.config.context);
    const Var<T> logits = model(ctx, Ids({1, seen}, {prompt.end() - seen, prompt.end()}));
    const auto v = static_cast<std::size_t>(model.config.vocab);
    prompt.push_back(draw(logits.value().values().last(v), temperature, rng));
    if (each && !each(prompt.back())) break;
  }
  return {prompt.begin() + static_cast<std::ptrdiff_t>(start), prompt.end()};
}

#define HEADWISE_INSTANTIATE(T)                                                            \
  template Id draw(std::span<const T>, double, Rng&);                                      \
  template std::vector<Id> sample(const Decoder<T>&, std::vector<Id>, Index, double, Rng&, \
                                  const std::function<bool(Id)>&);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise
