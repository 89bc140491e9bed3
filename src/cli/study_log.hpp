// What heads do while the model learns: `train --study-every`.
#pragma once

#include <string>

#include "cli/material.hpp"
#include "headwise/study/sequences.hpp"

namespace headwise::cli {

/// Looks at the same few sequences each time. Draws nothing that training draws, and changes
/// nothing.
template <Real T>
class StudyLog {
 public:
  StudyLog(const Run& run, const Material& material);

  /// {"event":"study","step":S,"train_loss":X|null,"heads":[{"layer":0,"head":0,"scores":{"previous_token":X,
  /// ...}},...]}: each score where it tells most (study::best_on).
  [[nodiscard]] std::string line(const Decoder<T>& model, Index step,
                                 std::optional<double> train_loss) const;

 private:
  study::Sequences data_;
  std::optional<study::Sequences> repeated_;
};

}  // namespace headwise::cli
