#include "headwise/ops/op_table.hpp"

#include <cmath>
#include <utility>

namespace headwise {

void any(Rng& rng, std::span<double> x) {
  for (double& v : x) v = rng.normal();
}

void positive(Rng& rng, std::span<double> x) {
  for (double& v : x) v = 0.5 + std::fabs(rng.normal());
}

void away_from_zero(Rng& rng, std::span<double> x) {
  any(rng, x);
  for (double& v : x) v += std::copysign(0.5, v);
}

void distinct(Rng& rng, std::span<double> x) {
  const double middle = static_cast<double>(x.size()) / 2;
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = 0.1 * (static_cast<double>(i) - middle);
    std::swap(x[i], x[static_cast<std::size_t>(rng.below(static_cast<Index>(i) + 1))]);
  }
}

std::vector<OpSpec> op_table() {
  return {
#define HEADWISE_OP(name) specs::name(),
#include "headwise/ops/ops.def"
#undef HEADWISE_OP
  };
}

std::vector<Tensor<double>> random_inputs(const OpCase& c, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<Tensor<double>> inputs;
  for (const Shape& shape : c.shapes) {
    Tensor<double> x = Tensor<double>::uninitialized(shape);
    c.domain(rng, {x.data(), static_cast<std::size_t>(x.size())});
    inputs.push_back(std::move(x));
  }
  return inputs;
}

template <Real T>
std::vector<GradCase> op_cases(std::uint64_t seed) {
  std::vector<GradCase> all;
  for (const OpSpec& spec : op_table())
    for (const OpCase& c : spec.cases)
      all.push_back({spec.name, c.label, [c, seed](const GradOptions& options) {
                       const std::vector<Tensor<double>> inputs = random_inputs(c, seed);
                       if constexpr (std::is_same_v<T, double>) {
                         return gradcheck<double>(c.f64, inputs, options);
                       } else {
                         std::vector<Tensor<float>> rounded;
                         for (const Tensor<double>& x : inputs)
                           rounded.push_back(convert<float>(x));
                         return gradcheck<float>(c.f32, std::move(rounded), options);
                       }
                     }});
  return all;
}

template std::vector<GradCase> op_cases<float>(std::uint64_t);
template std::vector<GradCase> op_cases<double>(std::uint64_t);

}  // namespace headwise
