#include "headwise/study/head.hpp"

#include <fmt/format.h>

#include "headwise/core/error.hpp"
#include "headwise/core/parse.hpp"

namespace headwise::study {

std::string name_of(HeadId head) { return fmt::format("{}.{}", head.layer, head.head); }

HeadId head_of(const std::string& option, const std::string& name, const ModelConfig& config) {
  const std::size_t dot = name.find('.');
  const auto layer = parse_number<Index>(name.substr(0, dot));
  const auto head = parse_number<Index>(dot == std::string::npos ? "" : name.substr(dot + 1));
  require<UsageError>(layer && head, "{}: expected LAYER.HEAD, such as 1.0, got '{}'", option,
                      name);
  require<UsageError>(
      *layer >= 0 && *layer < config.layers && *head >= 0 && *head < config.heads,
      "{}: there is no head {}; the model has {} layers of {} heads, from 0.0 to {}", option, name,
      config.layers, config.heads, name_of({config.layers - 1, config.heads - 1}));
  return {*layer, *head};
}

std::vector<HeadId> heads_of(const ModelConfig& config) {
  std::vector<HeadId> all;
  for (Index layer = 0; layer < config.layers; ++layer)
    for (Index head = 0; head < config.heads; ++head) all.push_back({layer, head});
  return all;
}

std::string attention_name(Index layer, std::string_view what) {
  return fmt::format("blocks.{}.attn.{}", layer, what);
}

}  // namespace headwise::study
