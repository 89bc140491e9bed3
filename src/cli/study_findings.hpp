// What `headwise study` finds out, in the order of its work.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headwise/study/circuits.hpp"
#include "headwise/study/composition.hpp"
#include "headwise/study/effects.hpp"
#include "headwise/study/pruning.hpp"
#include "headwise/study/study.hpp"

namespace headwise::cli {

/// Heads taken away together, and what that costs.
struct GroupFinding {
  std::optional<study::Score> role;  ///< nothing: heads without a role, or of several
  std::string label;
  bool alike = true;  ///< whether to ask if one stands in for another: not of a path's heads
  study::Group group{};
};

/// Each role's heads, and those without one. Where there is induction, also two sets of several
/// roles: heads named previous_token with a K-composition above the baseline with some induction
/// head, and all heads that are neither these nor induction. `pairs` ordered by `from`.
std::vector<GroupFinding> group_heads(const std::vector<study::HeadStudy>& heads,
                                      const std::vector<study::Composition>& pairs, Index width);

/// What the loss says of heads.
struct Causes {
  Index sequences = 0, length = 0;   ///< that heads were ablated on, and tokens of each at most
  double loss = 0;                   ///< of the unchanged model on them, nats a token
  std::vector<study::Effect> heads;  ///< in the order of heads_of(), like the next
  std::vector<double> importance;
  std::vector<GroupFinding> groups;
  study::PruningCurve pruning;
};

/// What the weights alone say.
struct Readings {
  std::vector<study::Composition> composition;
  std::vector<double> ov, qk;              ///< positivity of the circuits' eigenvalues, by head
  std::vector<study::TopCopying> copying;  ///< by head
  std::vector<study::TopCopying>
      copying_effective;  ///< by the effective embedding; empty without MLP
};

/// Everything that was found out about a model's heads.
struct Findings {
  std::vector<study::HeadStudy> heads;
  Causes causes;
  Readings weights;
};

/// Told what is being done.
using Telling = std::function<void(std::string_view)>;

template <Real T>
Findings find(const Decoder<T>& model, const study::Sets& sets, std::uint64_t seed,
              const Telling& tell);

}  // namespace headwise::cli
