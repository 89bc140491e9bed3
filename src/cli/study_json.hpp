// What `headwise study` found, as one JSON document.
#pragma once

#include <nlohmann/json.hpp>

#include "headwise/study/study.hpp"

namespace headwise::cli {

/// What was found out about a run's heads. More is added as more is asked for.
struct Findings {
  std::string run;
  std::vector<study::HeadStudy> heads;
};

/// {"value":X,"chance":X,"p":X,...}; numbers that are not finite are null.
nlohmann::json json_of(study::Score score, const study::Measure& measure);
/// {"previous_token":{...},...}.
nlohmann::json json_of(const study::Scores& scores);
/// A member of "heads".
nlohmann::json json_of(const study::HeadStudy& head);

}  // namespace headwise::cli
