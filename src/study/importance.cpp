#include "headwise/study/importance.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "headwise/nn/visit.hpp"
#include "headwise/study/head.hpp"
#include "study/targets.hpp"

namespace headwise::study {
namespace {

/// Puts a gate, open, behind each head of each sequence.
template <Real T>
class Gates : public Probe<T> {
 public:
  Gates(Tape<T>& tape, const ModelConfig& config) : tape_(tape), heads_(config.heads) {
    for (Index i = 0; i < config.layers; ++i) names_.push_back(attention_name(i, "z"));
  }
  [[nodiscard]] bool wants(std::string_view name) const override {
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  }
  Var<T> at(std::string_view, Var<T> z) override {
    const Index b = z.shape()[0], t = z.shape()[1], c = z.shape()[2];
    gates_.push_back(tape_.leaf(Tensor<T>::full({b, 1, heads_, 1}, T(1))));
    return reshape(reshape(z, {b, t, heads_, c / heads_}) * gates_.back(), {b, t, c});
  }
  /// Of each layer, (B,1,H,1).
  [[nodiscard]] const std::vector<Var<T>>& gates() const { return gates_; }

 private:
  Tape<T>& tape_;
  Index heads_;
  std::vector<std::string> names_;
  std::vector<Var<T>> gates_;
};

}  // namespace

template <Real T>
std::vector<double> importance(const Decoder<T>& model, const std::vector<Batch>& batches) {
  require_targets("importance", batches);
  Decoder<T> constant = model;  // so that backward goes to the gates alone
  for_each_param(constant, [](const std::string&, Param<T>& p) { p.trainable = false; });
  const auto layers = static_cast<std::size_t>(model.config.layers);
  const auto heads = static_cast<std::size_t>(model.config.heads);
  std::vector<double> total(layers * heads);
  Index counts = 0;  // sequences
  for (const Batch& batch : batches) {
    Tape<T> tape;
    Gates<T> gates(tape, model.config);
    tape.backward(constant.loss({.tape = &tape, .probe = &gates}, batch.inputs, batch.targets));
    for (std::size_t b = 0; b < static_cast<std::size_t>(batch.targets.shape[0]); ++b) {
      const Index own = counted_in(batch.targets, static_cast<Index>(b));
      if (own == 0) continue;
      ++counts;
      // The batch's loss has this much of the sequence's in it.
      const double share = static_cast<double>(own) / static_cast<double>(counted(batch.targets));
      for (std::size_t i = 0; i < layers; ++i) {
        const Tensor<T> slope = tape.grad(gates.gates()[i]);
        for (std::size_t h = 0; h < heads; ++h)
          total[i * heads + h] +=
              std::fabs(static_cast<double>(slope.values()[b * heads + h])) / share;
      }
    }
  }
  for (double& x : total) x /= static_cast<double>(counts);
  return total;
}

std::vector<double> normalized_by_layer(std::vector<double> importances,
                                        const ModelConfig& config) {
  require(static_cast<Index>(importances.size()) == config.layers * config.heads,
          "importance: {} values for {} layers of {} heads", importances.size(), config.layers,
          config.heads);
  for (auto first = importances.begin(); first != importances.end(); first += config.heads) {
    const auto last = first + config.heads;
    const double norm = std::sqrt(std::inner_product(first, last, first, 0.0));
    if (norm > 0) std::for_each(first, last, [&](double& x) { x /= norm; });
  }
  return importances;
}

template std::vector<double> importance(const Decoder<float>&, const std::vector<Batch>&);
template std::vector<double> importance(const Decoder<double>&, const std::vector<Batch>&);

}  // namespace headwise::study
