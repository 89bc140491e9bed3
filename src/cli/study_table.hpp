// What `headwise study` prints.
#pragma once

#include "cli/study_json.hpp"

namespace headwise::cli {

void print_heads(const std::vector<study::HeadStudy>& heads);

}  // namespace headwise::cli
