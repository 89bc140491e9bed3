#include "headwise/ops/op_table.hpp"

namespace headwise {

double any(Rng& rng) { return rng.normal(); }

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
    double* out = x.data();
    for (Index i = 0; i < x.size(); ++i) out[i] = c.domain(rng);
    inputs.push_back(std::move(x));
  }
  return inputs;
}

}  // namespace headwise
