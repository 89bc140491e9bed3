// A run's two JSON files, and the identity that ties its files together.
#pragma once

#include <string>

#include "headwise/train/run.hpp"

namespace headwise {

/// Where the metadata of a tensor file has the run's identity.
constexpr const char* kIdentityKey = "run";

/// A hash of what cannot change in a run. Options that resume() may change are not in it, nor are
/// paths, nor an option that the first runs did not have while it is at its default.
std::string identity_of(const RunConfig& config, const Tokenizer& tokenizer);

/// The text of config.json. Throws UsageError for a path that JSON cannot hold.
std::string config_text(const RunConfig& config, const Tokenizer& tokenizer);
/// The text of tokenizer.json.
std::string tokenizer_text(const Tokenizer& tokenizer);

/// What the two files of a folder say. Throws DataError naming the file, and what in it is missing,
/// unknown, impossible, or not what the run was started with.
struct RunFiles {
  explicit RunFiles(const Directory& folder);

  RunConfig config;
  Tokenizer tokenizer;
};

/// Whether one of Run::kFiles is what a run, of any version, writes under that name.
bool is_run_file(const Directory& folder, std::string_view name);

}  // namespace headwise
