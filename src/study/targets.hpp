// What batches ask of a model.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "headwise/data/text.hpp"

namespace headwise::study {

/// How many positions of all batches count. Throws ShapeError, beginning with `where`, when it is
/// none, or when inputs and targets differ in shape.
inline Index require_targets(std::string_view where, const std::vector<Batch>& batches) {
  Index counts = 0;
  for (const Batch& b : batches) {
    require(b.inputs.shape.rank() == 2 && b.inputs.shape == b.targets.shape,
            "{}: inputs {} and targets {} are not both (B,T)", where, b.inputs.shape,
            b.targets.shape);
    b.inputs.check(where);
    b.targets.check(where);
    counts += counted(b.targets);
  }
  require(counts > 0, "{}: no position of {} batches has a target", where, batches.size());
  return counts;
}

/// How many positions of a sequence count.   targets (B,T).
inline Index counted_in(const Ids& targets, Index sequence) {
  const Index time = targets.shape[1];
  const auto from = targets.values.begin() + sequence * time;
  return time - std::count(from, from + time, kIgnore);
}

/// How many tokens of a sequence are read: up to its last target that counts. What stands behind
/// them, padding, no target sees.   targets (B,T).
inline Index length_read(const Ids& targets, Index sequence) {
  const Index time = targets.shape[1];
  const auto from = targets.values.begin() + sequence * time;
  Index length = time;
  while (length > 0 && from[length - 1] == kIgnore) --length;
  return length;
}

}  // namespace headwise::study
