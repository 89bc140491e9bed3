// The worst element of a tensor again, with other steps.
#pragma once

#include "autograd/replay.hpp"

namespace headwise {

/// Fills in sweep and trend of a diagnosis. `place` is the tensor's.
template <Real T>
void sweep(const Subject<T>& subject, const Seen<T>& seen, const TensorCheck& t, Index place,
           double tolerance, Diagnosis& found);

}  // namespace headwise
