// What `headwise study` found, as one JSON document (and as the page's data).
#pragma once

#include <nlohmann/json.hpp>

#include "cli/study_findings.hpp"
#include "headwise/study/patching.hpp"
#include "headwise/train/run.hpp"

namespace headwise::cli {

/// {"value":X,"chance":X,"p":X,...}; numbers that are not finite are null.
nlohmann::json json_of(study::Score score, const study::Measure& measure);

/// "heads", "groups", "loss", "pruning", "composition".
nlohmann::json json_of(const Findings& findings, const ModelConfig& config);

/// "model" and "run".
nlohmann::json json_of_run(const Run& run);

/// Two prompts, and what patching one into the other did.
struct PatchedPrompts {
  std::vector<Id> clean, corrupt;
  study::Patching found;
};
nlohmann::json json_of(const PatchedPrompts& prompts, const Tokenizer& tokenizer,
                       const ModelConfig& config);

/// The scores that `train --study-every` logged, and the losses of the evaluations at those steps;
/// null when there are none. Lines that cannot be read are passed over.
nlohmann::json timeline_of(const std::string& log_file);

}  // namespace headwise::cli
