#include "headwise/nn/freeze.hpp"

#include <fnmatch.h>

#include <algorithm>

#include "headwise/core/printable.hpp"

namespace headwise {

std::vector<bool> frozen_among(const std::vector<std::string>& names, std::string_view patterns) {
  std::vector<bool> frozen(names.size());
  for (std::size_t at = 0; !patterns.empty() && at <= patterns.size();) {
    const std::size_t end = std::min(patterns.find(',', at), patterns.size());
    const std::string pattern(patterns.substr(at, end - at));
    at = end + 1;
    bool found = false;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (::fnmatch(pattern.c_str(), names[i].c_str(), FNM_NOESCAPE) == 0) frozen[i] = found = true;
    const auto some = names.begin() + std::min<std::ptrdiff_t>(4, std::ssize(names));
    require<ParameterError>(found, "freeze: '{}' fits no parameter; some are {}",
                            printable(pattern), fmt::join(names.begin(), some, ", "));
  }
  require<ParameterError>(std::find(frozen.begin(), frozen.end(), false) != frozen.end(),
                          "freeze: '{}' leaves no parameter to train", printable(patterns));
  return frozen;
}

}  // namespace headwise
