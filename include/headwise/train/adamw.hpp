// The optimiser, and the one pass over the gradients before it.
#pragma once

#include <cmath>
#include <string>
#include <unordered_map>
#include <vector>

#include "headwise/nn/visit.hpp"

namespace headwise {

/// Each a finite number >= 0, both betas below 1, eps above 0.
struct AdamWOptions {
  double weight_decay = 0.1;
  double beta1 = 0.9, beta2 = 0.99;
  double eps = 1e-8;
};

/// Whether weight decay applies: to matrices (embeddings included), not to biases and gains. By
/// rank, not by name.
template <Real T>
bool is_decayed(const Param<T>& p) {
  return p.value.shape().rank() >= 2;
}

/// What AdamW knows of one parameter.
template <Real T>
struct Moments {
  Tensor<T> mean, square;  ///< of the gradient
  Index updates = 0;       ///< t of the bias correction
};

/// AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101, alg. 2; the decay is scaled by lr):
///   p = p (1 - lr weight_decay) - lr m_hat / (sqrt(v_hat) + eps).
template <Real T>
class AdamW {
 public:
  /// Throws UsageError for an option out of range, in precision T too.
  explicit AdamW(const AdamWOptions& options = {});

  /// One update of every parameter that has a gradient, the gradient being scaled first. Parameters
  /// without one, or not trainable, keep value, moments and counter; one under two names is updated
  /// once. Several modules may be stepped one after the other: moments belong to the parameter.
  /// Throws, before anything has changed, UsageError for a rate or scale that is not a finite
  /// number >= 0 in precision T, ShapeError when a gradient or moments have not the shape of their
  /// parameter; and NotFinite naming the parameter when the update has made a weight or a moment
  /// not finite: then the state before the step is lost.
  template <class Model>
  void step(Model& model, double lr, double grad_scale = 1) {
    std::vector<Update> updates;
    for_each_param(model, [&](const std::string& name, Param<T>& p) {
      if (p.trainable && !p.grad.empty()) updates.push_back({name, &p});
    });
    update(updates, lr, grad_scale);
  }

  /// What is known of a parameter; null before its first update.
  [[nodiscard]] const Moments<T>* find(const Param<T>& p) const {
    const auto at = moments_.find(p.id.value());
    return at == moments_.end() ? nullptr : &at->second;
  }
  /// Forgets all moments.
  void clear() { moments_.clear(); }
  /// Continues with these moments. Throws ShapeError, by that name, when they have another shape.
  void set(const std::string& name, const Param<T>& p, Moments<T> moments);

 private:
  struct Update {
    std::string name;
    Param<T>* param;
  };
  void update(const std::vector<Update>& updates, double lr, double grad_scale);

  AdamWOptions options_;
  std::unordered_map<std::uint64_t, Moments<T>> moments_;  // by the parameter's id
};

/// Sum of squares of a tensor, in double, by blocks in a fixed order.
template <Real T>
double squared_norm(const Tensor<T>& x);

/// Global norm of all gradients, in double. Throws NotFinite naming the parameter and the element
/// when one is not finite (nothing must be stepped then), and when the norm itself is no double.
template <class Model>
double gradient_norm(Model& model) {
  double squares = 0;
  for_each_param(model, [&](const std::string&, const auto& p) {
    if (!p.grad.empty()) squares += squared_norm(p.grad);
  });
  if (std::isfinite(squares)) [[likely]]
    return std::sqrt(squares);
  // A square that is no double may be one of a finite number: all is scaled, as BLAS's nrm2 does.
  constexpr double kFactor = 0x1p-600;
  double scaled = 0;
  for_each_param(model, [&](const std::string& name, const auto& p) {
    for (Index i = 0; i < p.grad.size(); ++i) {
      const auto x = static_cast<double>(p.grad.values()[static_cast<std::size_t>(i)]);
      require<NotFinite>(std::isfinite(x), "gradient of '{}' is not finite: {} at element {} of {}",
                         name, x, i, p.grad.shape());
      scaled += x * kFactor * (x * kFactor);
    }
  });
  const double norm = std::sqrt(scaled) / kFactor;
  require<NotFinite>(std::isfinite(norm), "gradient: its norm is above the largest double");
  return norm;
}

/// The factor that brings a gradient norm down to max_norm; 1 when it is not above, or max_norm is
/// 0 (no clipping).   (Pascanu et al. 2013, arXiv:1211.5063, alg. 1)
/// Throws UsageError unless both are finite numbers >= 0.
double clip_factor(double norm, double max_norm);

/// Forgets all gradients.
template <class Model>
void zero_grad(Model& model) {
  for_each_param(model, [](const std::string&, auto& p) { p.grad = {}; });
}

/// Names of trainable parameters that no backward has reached.
template <class Model>
std::vector<std::string> without_gradient(Model& model) {
  std::vector<std::string> names;
  for_each_param(model, [&](const std::string& name, const auto& p) {
    if (p.trainable && p.grad.empty()) names.push_back(name);
  });
  return names;
}

extern template class AdamW<float>;
extern template class AdamW<double>;

}  // namespace headwise
