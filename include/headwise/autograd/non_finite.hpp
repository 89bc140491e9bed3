// Where a number arose that is not finite.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headwise/autograd/gradcheck.hpp"

namespace headwise {

/// The first tensor of a pass, forward and then backward, with an element that is not finite,
/// although all that it was computed from on the tape is.
struct NonFinite {
  enum class Kind {
    parameter,  ///< a parameter, before the pass
    value,      ///< the result of an op, or an input of the pass ("leaf")
    gradient    ///< what the backward of an op gave one of its inputs
  };
  Kind kind = Kind::value;
  std::string name;  ///< of the parameter; of an op: those of the parameters it takes, with commas
  std::string op{};  ///< as in ops.def
  Index place = -1;  ///< of the op on the tape
  Index input = -1;  ///< of a gradient: of which of the op's inputs
  std::string scope{};  ///< where in the model, if that is known: "before blocks.0.attn.z"
  Shape shape{};        ///< of the tensor
  Index element = 0;    ///< the first one that is not finite, row-major
  double value = 0;     ///< what stands there
  Index count = 0;      ///< how many elements are not finite
  /// What it was computed from, and how large that is: "linear (4,8) up to 3.1e+38".
  std::vector<std::string> inputs{};

  /// All of this as a sentence.
  [[nodiscard]] std::string describe() const;
};

/// Runs a forward pass and, if that is finite, its backward from a loss with this gradient, op by
/// op, and looks at every tensor. Nothing when all are finite. Parameters get no gradients. `scope`
/// may say where in the model a place on the tape is. Throws ShapeError when the result has more
/// than one element, and what the forward throws while all is finite.
template <Real T>
std::optional<NonFinite> first_non_finite(const Subject<T>& subject, T seed = 1,
                                          const std::function<std::string(Index)>& scope = nullptr);

}  // namespace headwise
