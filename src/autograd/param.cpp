#include "headwise/autograd/param.hpp"

#include <atomic>

namespace headwise {

std::uint64_t ParamId::unused() {
  static std::atomic<std::uint64_t> next{0};
  return next++;
}

}  // namespace headwise
