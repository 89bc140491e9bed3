#include "headwise/nn/ctx.hpp"

#include <algorithm>

#include "headwise/core/nearest.hpp"
#include "headwise/core/printable.hpp"

namespace headwise {

template <Real T>
bool Probe<T>::wants(std::string_view name) const {
  const std::vector<std::string> all = names();
  return std::find(all.begin(), all.end(), name) != all.end();
}

template <Real T>
std::string Ctx<T>::path(std::string_view what) const {
  if (parent == nullptr) return std::string(what);
  const std::string here = index < 0 ? std::string(name) : fmt::format("{}.{}", name, index);
  return parent->path(fmt::format("{}.{}", here, what));
}

template <Real T>
Var<T> Ctx<T>::shown(std::string_view what, Var<T> x) const {
  const std::string full = path(what);
  if (!probe->wants(full)) return x;
  const Shape shape = x.shape();
  Var<T> y = probe->at(full, std::move(x));
  require(!y.absent(), "hook: nothing was put in the place of '{}' of shape {}", full, shape);
  require(y.shape() == shape, "hook: '{}' of shape {} was replaced by a tensor of shape {}", full,
          shape, y.shape());
  return y;
}

template <Real T>
bool NameCheck<T>::wants(std::string_view name) const {
  seen_.emplace_back(name);
  return to_.wants(name);
}

template <Real T>
void NameCheck<T>::check() const {
  for (const std::string& name : to_.names()) {
    if (std::find(seen_.begin(), seen_.end(), name) != seen_.end()) continue;
    std::vector<std::string> known;
    for (const std::string& each : seen_)
      if (std::find(known.begin(), known.end(), each) == known.end()) known.push_back(each);
    throw UsageError(fmt::format("hook: this forward pass has no '{}'; the nearest names are {}",
                                 printable(name), fmt::join(nearest(name, known), ", ")));
  }
}

template struct Probe<float>;
template struct Probe<double>;
template struct Ctx<float>;
template struct Ctx<double>;
template class NameCheck<float>;
template class NameCheck<double>;

}  // namespace headwise
