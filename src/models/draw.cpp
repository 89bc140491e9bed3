#include "headwise/models/draw.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "headwise/core/error.hpp"
#include "kernels/kernels.hpp"

namespace headwise {

void Drawing::validate() const {
  require<ParameterError>(std::isfinite(temperature) && temperature >= 0,
                          "temperature: must be finite and >= 0, got {}", temperature);
  require<ParameterError>(top_k >= 0, "top-k: must be >= 0, got {}", top_k);
  require<ParameterError>(top_p > 0 && top_p <= 1, "top-p: must be in (0, 1], got {}", top_p);
}

Drawer::Drawer(const Drawing& drawing) : drawing_(drawing) { drawing.validate(); }

/// Keeps the first tokens, in that order, that have p of the weight.
template <class Before>
void Drawer::keep_most_likely(double p, Before before) {
  double total = 0;
  for (const Token& t : tokens_) total += t.weight;
  // So unlikely that all of these together are not the 1 - p that may go: no need to sort them.
  const double least = (1 - p) * total / static_cast<double>(tokens_.size());
  std::erase_if(tokens_, [&](const Token& t) { return t.weight < least; });
  std::sort(tokens_.begin(), tokens_.end(), before);
  std::size_t count = 0;
  for (double mass = 0; count < tokens_.size() && mass < p * total; ++count)
    mass += tokens_[count].weight;
  tokens_.resize(count);
}

template <Real T>
Id Drawer::draw(std::span<const T> logits, Rng& rng) {
  require(!logits.empty(), "sample: there are no logits");
  const auto top = std::max_element(logits.begin(), logits.end());
  require<Error>(std::none_of(logits.begin(), logits.end(), [](T x) { return std::isnan(x); }) &&
                     std::isfinite(*top),
                 "sample: the model's logits are not finite");
  if (drawing_.temperature == 0) return static_cast<Id>(top - logits.begin());

  const auto logit = [&](const Token& t) { return logits[static_cast<std::size_t>(t.id)]; };
  const auto before = [&](const Token& a, const Token& b) {
    return logit(a) > logit(b) || (logit(a) == logit(b) && a.id < b.id);
  };
  // A filter that keeps all tokens must change no draw, so what is left is drawn from by id.
  const auto order_by_id = [&] {
    std::sort(tokens_.begin(), tokens_.end(),
              [](const Token& a, const Token& b) { return a.id < b.id; });
  };
  weights_.resize(logits.size());
  for (std::size_t i = 0; i < weights_.size(); ++i)
    weights_[i] =
        (static_cast<double>(logits[i]) - static_cast<double>(*top)) / drawing_.temperature;
  kernels::exp_minus(&weights_[0], 0.0, 1.0, &weights_[0], std::ssize(weights_));
  if ((drawing_.top_k == 0 || drawing_.top_k >= std::ssize(weights_)) && drawing_.top_p == 1) {
    const double at = rng.uniform() * std::accumulate(weights_.begin(), weights_.end(), 0.0);
    double upto = 0;
    const auto found = std::find_if(weights_.begin(), weights_.end() - 1,
                                    [&](double weight) { return (upto += weight) > at; });
    return static_cast<Id>(found - weights_.begin());
  }
  tokens_.resize(logits.size());
  for (std::size_t i = 0; i < tokens_.size(); ++i) tokens_[i] = {static_cast<Id>(i), weights_[i]};
  if (drawing_.top_k > 0 && drawing_.top_k < std::ssize(tokens_)) {
    std::nth_element(tokens_.begin(), tokens_.begin() + drawing_.top_k, tokens_.end(), before);
    tokens_.resize(static_cast<std::size_t>(drawing_.top_k));
    order_by_id();
  }
  if (drawing_.top_p < 1) {
    keep_most_likely(drawing_.top_p, before);
    order_by_id();
  }

  double total = 0;
  for (const Token& t : tokens_) total += t.weight;
  const double at = rng.uniform() * total;
  double upto = 0;
  for (const Token& t : tokens_)
    if ((upto += t.weight) > at) return t.id;
  return tokens_.back().id;  // not reached: a uniform number is below 1
}

template Id Drawer::draw(std::span<const float>, Rng&);
template Id Drawer::draw(std::span<const double>, Rng&);

}  // namespace headwise
