// One input of one record, compared at the values it really saw.
#pragma once

#include <vector>

#include "autograd/fault.hpp"
#include "autograd/region.hpp"
#include "autograd/replay.hpp"

namespace headwise {

struct LocalCheck {
  LocalGradient gradient;   ///< of the elements looked at, in order
  std::vector<Mark> marks;  ///< by element of the input
  Index looked_at = 0;      ///< elements; fewer than there are where these are too many
  bool wrong = false;
  Index at = 0;  ///< the worst element
  double analytic = 0, numeric = 0;
};

/// `analytic` is the gradient of the record's projected result, empty for none. At most `most`
/// elements are looked at where a whole Jacobian is too large; then a wrong element is looked for
/// by halves as well.
template <Real T>
LocalCheck check_alone(const Subject<T>& subject, const Seen<T>& seen, Index record, Index place,
                       const Tensor<T>& analytic, const GradReport& report, std::uint64_t seed,
                       Index time_for);

}  // namespace headwise
