// Parameters that training leaves as they are, chosen by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headwise/nn/visit.hpp"

namespace headwise {

/// For each name whether one of the patterns fits all of it. Patterns stand between commas, as a
/// shell reads them: "blocks.0.*,tok.weight", "*.bias", "blocks.[01].attn.*"; "" is none. Throws
/// UsageError naming --freeze when a pattern fits no name, or together they fit all.
std::vector<bool> frozen_among(const std::vector<std::string>& names, std::string_view patterns);

/// Makes those parameters of a module constants; what is one already stays so. Throws as
/// frozen_among() does, and changes nothing then.
template <class M>
void freeze(M& module, std::string_view patterns) {
  std::vector<std::string> names;
  for_each_param(module, [&](const std::string& name, auto&) { names.push_back(name); });
  const std::vector<bool> frozen = frozen_among(names, patterns);
  std::size_t i = 0;
  for_each_param(module, [&](const std::string&, auto& p) {
    if (frozen[i++]) p.trainable = false;
  });
}

}  // namespace headwise
