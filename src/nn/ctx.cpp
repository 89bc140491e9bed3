#include "headwise/nn/ctx.hpp"

namespace headwise {

template <Real T>
std::string Ctx<T>::path(std::string_view what) const {
  if (parent == nullptr) return std::string(what);
  const std::string here = index < 0 ? std::string(name) : fmt::format("{}.{}", name, index);
  return parent->path(fmt::format("{}.{}", here, what));
}

template struct Ctx<float>;
template struct Ctx<double>;

}  // namespace headwise
