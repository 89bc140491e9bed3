// How a head is named.
#pragma once

#include <string>
#include <vector>

#include "headwise/core/parse.hpp"
#include "headwise/models/decoder.hpp"

namespace headwise::study {

/// A head of a model; "1.0" is the first one of the second layer.
struct HeadId {
  Index layer = 0, head = 0;

  auto operator<=>(const HeadId&) const = default;
};

using headwise::name_of;  // of enumerations: not hidden by the next
/// "1.0".
std::string name_of(HeadId head);
/// The head of a name. Throws UsageError, beginning with `option`, for a text that is no such name
/// or that names a head the model does not have.
HeadId head_of(const std::string& option, const std::string& name, const ModelConfig& config);

/// Every head, layer by layer.
std::vector<HeadId> heads_of(const ModelConfig& config);

/// The full name of an activation of a layer's attention: "blocks.1.attn.z" for 1 and "z".
std::string attention_name(Index layer, std::string_view what);

}  // namespace headwise::study
