// The optimiser, and the one pass over the gradients before it.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "headwise/nn/visit.hpp"

namespace headwise {

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
  /// Throws UsageError unless both betas are in [0, 1), in precision T too.
  explicit AdamW(const AdamWOptions& options = {});

  /// One update of every parameter that has a gradient, the gradient being scaled first. Parameters
  /// without one, or not trainable, keep value, moments and counter.
  template <class Model>
  void step(Model& model, double lr, double grad_scale = 1) {
    std::vector<Update> updates;
    for_each_param(model, [&](const std::string& name, Param<T>& p) {
      if (p.trainable && !p.grad.empty()) updates.push_back({&moments[name], &p});
    });
    update(updates, lr, grad_scale);
  }

  std::map<std::string, Moments<T>> moments;  ///< by parameter name

 private:
  struct Update {
    Moments<T>* moments;
    Param<T>* param;
  };
  void update(const std::vector<Update>& updates, double lr, double grad_scale) const;

  AdamWOptions options_;
};

/// Sum of squares of a tensor, in double, by blocks in a fixed order.
template <Real T>
double squared_norm(const Tensor<T>& x);

/// Global norm of all gradients, in double. Throws Error naming the parameter when one is not
/// finite: nothing must be stepped then.
template <class Model>
double gradient_norm(Model& model) {
  double total = 0;
  for_each_param(model, [&](const std::string& name, const auto& p) {
    const double square = p.grad.empty() ? 0 : squared_norm(p.grad);
    require<Error>(std::isfinite(square), "gradient of '{}' is not finite (squared norm {})", name,
                   square);
    total += square;
  });
  require<Error>(std::isfinite(total), "gradient: the norm of all is not finite");
  return std::sqrt(total);
}

/// The factor that brings a gradient norm down to max_norm; 1 when it is not above, or max_norm is
/// 0 (no clipping).   (Pascanu et al. 2013, arXiv:1211.5063, alg. 1)
inline double clip_factor(double norm, double max_norm) {
  return max_norm > 0 && norm > max_norm ? max_norm / norm : 1;
}

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
