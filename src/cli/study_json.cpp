#include "cli/study_json.hpp"

#include <cmath>

namespace headwise::cli {

using nlohmann::json;
using study::Measure, study::Score, study::Scores;

namespace {

json number(double x) { return std::isfinite(x) ? json(x) : json(nullptr); }

bool is_relation(Score score) { return study::best_on(score) == study::On::stories; }

}  // namespace

json json_of(Score score, const Measure& m) {
  json j = {{"value", number(m.value)},
            {"chance", number(m.chance)},
            {"p", m.p ? number(*m.p) : json(nullptr)}};
  if (score == Score::fixed_offset) j["offset"] = m.offset;
  if (is_relation(score)) {
    j["baseline"] = number(m.baseline);
    j["baseline_offset"] = m.baseline_offset;
  }
  return j;
}

json json_of(const Scores& scores) {
  json j = json::object();
  for (const auto& [score, measure] : scores)
    j[std::string(name_of(score))] = json_of(score, measure);
  return j;
}

json json_of(const study::HeadStudy& head) {
  json scores = json::object();
  for (std::size_t i = 0; i < names_of(Score{}).size(); ++i) {
    const auto score = static_cast<Score>(i);
    const Measure* const m = head.score(score);
    if (m == nullptr) continue;
    json& entry = scores[std::string(name_of(score))] = json_of(score, *m);
    entry["on"] = name_of(study::best_on(score));
  }
  json j = {{"layer", head.id.layer},
            {"head", head.id.head},
            {"role", head.role ? json(name_of(*head.role)) : json(nullptr)},
            {"label", head.label},
            {"scores", std::move(scores)}};
  for (const auto& [on, all] : head.on) j[fmt::format("on_{}", name_of(on))] = json_of(all);
  return j;
}

}  // namespace headwise::cli
