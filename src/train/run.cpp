#include "headwise/train/run.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "headwise/core/printable.hpp"
#include "headwise/train/memory_use.hpp"
#include "train/run_config.hpp"

namespace headwise {
namespace {

Directory existing(const std::string& folder) {
  require<DataError>(std::filesystem::is_directory(folder), "{}: no such run folder",
                     printable(folder));
  return Directory(folder);
}

void require_unlocked(const Directory& directory) {
  const std::string holder = FolderLock::holder(directory);
  require<DataError>(holder.empty(), "{}: is in use by {}", printable(directory.path()), holder);
}

}  // namespace

Run::Run(Directory directory, std::shared_ptr<const FolderLock> lock, const RunConfig& config,
         Tokenizer tokenizer)
    : directory_(std::move(directory)),
      lock_(std::move(lock)),
      config_(config),
      tokenizer_(std::move(tokenizer)),
      identity_(identity_of(config_, tokenizer_)) {}

void Run::require_free(const std::string& folder, bool force) {
  if (!std::filesystem::is_directory(folder)) return;
  const Directory directory(folder);
  require_unlocked(directory);
  require_replaceable(directory, force);
}

void Run::require_replaceable(const Directory& directory, bool force) {
  std::vector<std::string_view> own, foreign;
  for (const std::string_view name : kFiles)
    if (directory.has(std::string(name)))
      (is_run_file(directory, name) ? own : foreign).push_back(name);
  const bool holds_run =
      directory.has(kLast) && std::any_of(own.begin(), own.end(), [](std::string_view name) {
        return name == kLast || name == kConfig;
      });
  require<UsageError>(!holds_run,
                      "--out: {} holds a run already; --resume it or choose another folder",
                      printable(directory.path()));
  require<UsageError>(force || foreign.empty(),
                      "--out: {} has {}, which headwise did not write; choose another folder, or "
                      "replace with --force",
                      printable(directory.path()), fmt::join(foreign, ", "));
}

Run Run::create(const std::string& folder, const RunConfig& config, const Tokenizer& tokenizer,
                bool force) {
  const std::string text = config_text(config, tokenizer);  // refused before there is a folder
  require_free(folder, force);
  Directory directory = Directory::create(folder);
  const auto lock = std::make_shared<const FolderLock>(directory);
  require_replaceable(directory, force);  // another process may have trained in the meantime
  directory.remove_temporaries();
  for (const char* name : kFiles) directory.remove(name);
  directory.replace(kTokenizer, tokenizer_text(tokenizer));
  directory.replace(kConfig, text);
  return {std::move(directory), lock, config, tokenizer};
}

Run Run::open(const std::string& folder) { return opened(existing(folder), nullptr); }

Run Run::resume(const std::string& folder) {
  Directory directory = existing(folder);
  require_unlocked(directory);  // also one that has only begun to write its files
  require<DataError>(directory.has(kConfig), "{}: no such file",
                     printable(directory.path(kConfig)));
  auto lock = std::make_shared<const FolderLock>(directory);
  directory.remove_temporaries();
  return opened(std::move(directory), std::move(lock));
}

Run Run::opened(Directory directory, std::shared_ptr<const FolderLock> lock) {
  RunFiles files(directory);
  return {std::move(directory), std::move(lock), files.config, std::move(files.tokenizer)};
}

TensorFile Run::tensors(const char* name) const {
  require<DataError>(directory_.has(kLast) || directory_.has(kModel),
                     "{}: nothing was saved yet: it has neither {} nor {}; train it again with "
                     "--out {}",
                     printable(folder()), kLast, kModel, printable(folder()));
  TensorFile file(directory_.file(name));
  const auto found = file.metadata().find(kIdentityKey);
  require<DataError>(found != file.metadata().end() || config_.format == 0,
                     "{}: has no identity in its metadata: no run of this version wrote it",
                     printable(file.path()));
  require<DataError>(found == file.metadata().end() || found->second == identity_,
                     "{}: belongs to another run: it says {}, config.json {}",
                     printable(file.path()), printable(found->second), identity_);
  return file;
}

void Run::change(const TrainOptions& options, const LoopOptions& loop, const std::string& blas) {
  config_.train = options;
  config_.loop = loop;
  config_.blas = blas;
  directory_.replace(kConfig, config_text(config_, tokenizer_));
}

void Run::log(const std::string& line) const { directory_.append(kLog, line + "\n"); }

void Run::rewind_log(Index steps, Index evaluated) const {
  if (!directory_.has(kLog)) return;
  const std::string text = directory_.read(kLog);
  std::string kept;
  std::istringstream file(text);
  for (std::string line; std::getline(file, line);) {
    const auto j = nlohmann::json::parse(line, nullptr, false);
    const bool has_step = j.is_object() && j.contains("step") && j["step"].is_number_integer();
    if (!has_step) continue;
    const bool evaluation = j.contains("event") && j["event"] == "eval";
    if (j["step"].get<Index>() <= (evaluation ? evaluated : steps)) kept += line + "\n";
  }
  if (kept != text) directory_.replace(kLog, kept);
}

template <Real T>
void save_model(const Run& run, Decoder<T>& model) {
  TensorFileWriter weights;
  add_weights(model, weights);
  weights.metadata(kIdentityKey, run.identity());
  weights.save(run.directory().replace(Run::kModel));
}

template <Real T>
void save_run(const Run& run, const Trainer<T>& trainer, Decoder<T>& model, bool best) {
  TensorFileWriter state;
  trainer.save(state);  // throws before anything is replaced
  if (best || !run.directory().has(Run::kModel)) save_model(run, model);
  state.metadata(kIdentityKey, run.identity());
  state.save(run.directory().replace(Run::kLast));
}

template <Real T>
Decoder<T> load_model(const Run& run, std::vector<std::string>& not_finite) {
  const TensorFile weights = run.weights();
  require_numbers(weights, run.config().model);
  Rng rng(run.config().seed);
  Decoder<T> model(run.config().model, rng);
  not_finite = load_weights(model, weights);
  return model;
}

#define HEADWISE_INSTANTIATE(T)                                             \
  template void save_model(const Run&, Decoder<T>&);                        \
  template void save_run(const Run&, const Trainer<T>&, Decoder<T>&, bool); \
  template Decoder<T> load_model(const Run&, std::vector<std::string>&);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise
