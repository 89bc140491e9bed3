// What proves an op: cases as data. An op that has no spec does not link.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "headwise/autograd/gradcheck.hpp"
#include "headwise/core/random.hpp"

namespace headwise {

/// Fills an input with numbers from the set on which an op is differentiable, none of them close to
/// its border.
using Domain = void (*)(Rng&, std::span<double> x);
/// Any numbers: standard normal.
void any(Rng& rng, std::span<double> x);
/// Numbers of 0.5 and more.
void positive(Rng& rng, std::span<double> x);
/// Numbers of either sign, of absolute value 0.5 and more.
void away_from_zero(Rng& rng, std::span<double> x);
/// Numbers of either sign that differ by 0.1 and more, in any order.
void distinct(Rng& rng, std::span<double> x);

/// One way to call an op: which inputs it takes and the call, in both precisions.
struct OpCase {
  std::string label;
  std::vector<Shape> shapes;
  Domain domain;
  Function<float> f32;
  Function<double> f64;
};

/// `call` takes a vector of Vars of either precision.
template <class Call>
OpCase op_case(std::string label, std::vector<Shape> shapes, Domain domain, Call call) {
  return {std::move(label), std::move(shapes), domain, call, call};
}

struct OpSpec {
  std::string name;
  std::vector<OpCase> cases;
};

namespace specs {
#define HEADWISE_OP(name) OpSpec name();
#include "headwise/ops/ops.def"
#undef HEADWISE_OP
}  // namespace specs

/// Every op with its cases, in the order of ops.def.
std::vector<OpSpec> op_table();

/// Inputs for a case, from its domain: always the same ones for a seed.
std::vector<Tensor<double>> random_inputs(const OpCase& c, std::uint64_t seed = 1);

/// Checks of every op in precision T, on the inputs of that seed.
template <Real T>
std::vector<GradCase> op_cases(std::uint64_t seed = 1);

}  // namespace headwise
