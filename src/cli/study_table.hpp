// What `headwise study` prints.
#pragma once

#include "cli/study_findings.hpp"
#include "cli/study_json.hpp"
#include "cli/study_shown.hpp"

namespace headwise::cli {

/// Each head's role with score and chance, and what the loss says; then groups, then every score.
void print_findings(const Findings& findings, const ModelConfig& config);

/// The patched heads and positions that matter most.
void print_patching(const PatchedPrompts& prompts, const Tokenizer& tokenizer,
                    const ModelConfig& config);

/// A head's pattern over a text, a line for each query: a compact heat map in Unicode.
template <Real T>
void print_pattern(PatternsOfTexts<T>& patterns, study::HeadId head, const ShownText& text,
                   const Tokenizer& tokenizer);

/// A token on one terminal cell or more: blanks, line ends and control characters visible.
std::string visible(const std::string& token);

}  // namespace headwise::cli
