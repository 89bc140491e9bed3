#include "cli/study_log.hpp"

#include <nlohmann/json.hpp>

#include "cli/prompt.hpp"
#include "headwise/study/roles.hpp"

namespace headwise::cli {
namespace {

/// Sequences of each kind, and the seed that draws them: the same for every run.
constexpr Index kWatched = 8;
constexpr std::uint64_t kSeed = 1;

}  // namespace

template <Real T>
StudyLog<T>::StudyLog(const Run& run, const Material& material)
    : data_(study::data_sequences(*material.source, kWatched, kSeed)),
      repeated_(study::repeated_sequences(data_, kWatched, run.config().model.context,
                                          token_of(run.tokenizer(), "\n"), kSeed)) {}

template <Real T>
std::string StudyLog<T>::line(const Decoder<T>& model, Index step,
                              std::optional<double> train_loss) const {
  const std::vector<study::Scores> on_data = study::pattern_scores(model, data_, false);
  std::vector<study::Scores> on_repeated(on_data.size());
  if (repeated_) on_repeated = study::pattern_scores(model, *repeated_, false);
  nlohmann::json line = {{"event", "study"}, {"step", step}, {"train_loss", nullptr}};
  if (train_loss) line["train_loss"] = *train_loss;
  const std::vector<study::HeadId> ids = study::heads_of(model.config);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    nlohmann::json scores;
    const auto keep = [&](study::On on, const study::Scores& found) {
      for (const auto& [score, measure] : found)
        if (study::best_on(score) == on) scores[std::string(name_of(score))] = measure.value;
    };
    keep(study::On::data, on_data[i]);
    keep(study::On::repeated, on_repeated[i]);
    line["heads"].push_back(
        {{"layer", ids[i].layer}, {"head", ids[i].head}, {"scores", std::move(scores)}});
  }
  return line.dump();
}

template class StudyLog<float>;
template class StudyLog<double>;

}  // namespace headwise::cli
