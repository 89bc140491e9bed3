// The gradient check of a trained model on its own data.
#pragma once

#include <cstdint>
#include <string>

#include "headwise/autograd/gradcheck.hpp"

namespace headwise::cli {

/// A check, "run" of `folder`, of every parameter of a run's model: in double whatever it was
/// trained in, by its loss on a few sequences of the part that it is validated on, with dropout as
/// in training. Every second label is another than the data's, so that a model which has learned
/// them all still has gradients. With neither `sample` nor `seconds` it samples a few elements of
/// each parameter: all of them would take hours. Throws as Run::open() and material_of_run() do.
GradCase run_case(const std::string& folder, std::uint64_t seed);

}  // namespace headwise::cli
