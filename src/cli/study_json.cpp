#include "cli/study_json.hpp"

#include <filesystem>
#include <sstream>

#include "cli/json.hpp"
#include "cli/study_shown.hpp"
#include "headwise/core/file.hpp"

namespace headwise::cli {

using nlohmann::json;
using study::Measure, study::Score, study::Scores;

namespace {

json json_of(const study::Effect& e) {
  return {{"full", number(e.full)},
          {"full_error", number(e.full_error)},
          {"frozen_patterns", number(e.frozen_patterns)},
          {"mean", number(e.mean)},
          {"resample", number(e.resample)}};
}

json json_of(const Scores& scores) {
  json j = json::object();
  for (const auto& [score, measure] : scores)
    j[std::string(name_of(score))] = cli::json_of(score, measure);
  return j;
}

json json_of(const study::HeadStudy& head) {
  json scores = json::object();
  for (std::size_t i = 0; i < names_of(Score{}).size(); ++i) {
    const auto score = static_cast<Score>(i);
    const Measure* const m = head.score(score);
    if (m == nullptr) continue;
    json& entry = scores[std::string(name_of(score))] = cli::json_of(score, *m);
    entry["on"] = name_of(head.where(score));
  }
  json j = {{"layer", head.id.layer},
            {"head", head.id.head},
            {"role", head.role ? json(name_of(*head.role)) : json(nullptr)},
            {"label", head.label},
            {"explained", head.role ? number(study::explained(head, *head.role)) : json(nullptr)},
            {"corrected_p", head.role ? number(head.corrected_p) : json(nullptr)},
            {"scores", std::move(scores)}};
  for (const auto& [on, all] : head.on) j[fmt::format("on_{}", name_of(on))] = json_of(all);
  return j;
}

json json_of(const GroupFinding& g) {
  json heads = json::array();
  for (const study::HeadId id : g.group.heads) heads.push_back(name_of(id));
  json j = json_of(g.group.joint);
  j["role"] = g.role ? json(name_of(*g.role)) : json(nullptr);
  j["label"] = g.label;
  j["heads"] = std::move(heads);
  j["sum_of_single"] = number(g.group.sum_of_single);
  j["redundant"] = g.alike ? json(g.group.redundant) : json(nullptr);
  return j;
}

json json_of(const std::vector<study::PruningPoint>& curve, bool several) {
  json all = json::array();
  for (const study::PruningPoint& p : curve) {
    json j = {{"removed", p.removed}, {"loss", number(p.loss)}};
    if (several) {
      j["least"] = number(p.least);
      j["most"] = number(p.most);
    }
    all.push_back(std::move(j));
  }
  return all;
}

json copying_of(const Readings& weights, std::size_t head) {
  json j = {{"ov_eigenvalues", number(weights.ov[head])},
            {"qk_eigenvalues", number(weights.qk[head])},
            {"ov_top1", weights.copying[head].top1},
            {"ov_top5", weights.copying[head].top5}};
  // Heads of the first layer read before the MLP that makes the effective embedding.
  if (!weights.copying_effective.empty() && weights.copying[head].head.layer > 0) {
    j["ov_top1_effective"] = weights.copying_effective[head].top1;
    j["ov_top5_effective"] = weights.copying_effective[head].top5;
  }
  return j;
}

}  // namespace

json json_of(Score score, const Measure& m) {
  json j = {{"value", number(m.value)},
            {"chance", number(m.chance)},
            {"p", m.p ? number(*m.p) : json(nullptr)}};
  if (score == Score::fixed_offset) j["offset"] = m.offset;
  if (study::best_on(score) == study::On::stories) {
    j["baseline"] = number(m.baseline);
    j["baseline_offset"] = m.baseline_offset;
    j["baseline_place"] = number(m.baseline_place);
    j["p_baseline"] = m.p_baseline ? number(*m.p_baseline) : json(nullptr);
  }
  return j;
}

json json_of(const Findings& f, const ModelConfig& config) {
  json heads = json::array(), groups = json::array(), pairs = json::array();
  for (std::size_t i = 0; i < f.heads.size(); ++i) {
    json j = json_of(f.heads[i]);
    j["ablation"] = json_of(f.causes.heads[i]);
    j["importance"] = number(f.causes.importance[i]);
    j["copying"] = copying_of(f.weights, i);
    heads.push_back(std::move(j));
  }
  for (const GroupFinding& g : f.causes.groups) groups.push_back(json_of(g));
  for (const study::Composition& c : f.weights.composition)
    pairs.push_back({{"from", name_of(c.from)},
                     {"to", name_of(c.to)},
                     {"q", number(c.q)},
                     {"k", number(c.k)},
                     {"v", number(c.v)}});
  return {{"heads", std::move(heads)},
          {"groups", std::move(groups)},
          {"loss", number(f.causes.loss)},
          {"ablated_on", {{"sequences", f.causes.sequences}, {"length", f.causes.length}}},
          {"pruning",
           {{"by_importance", json_of(f.causes.pruning.by_importance, false)},
            {"random", json_of(f.causes.pruning.random, true)}}},
          {"composition",
           {{"baseline", study::composition_baseline(config.width)}, {"pairs", std::move(pairs)}}}};
}

json json_of_run(const Run& run) {
  const ModelConfig& m = run.config().model;
  return {{"headwise", HEADWISE_VERSION},
          {"run", run.folder()},
          {"model",
           {{"layers", m.layers},
            {"heads", m.heads},
            {"width", m.width},
            {"context", m.context},
            {"vocab", m.vocab},
            {"attention_only", m.attention_only},
            {"tied", m.tie},
            {"tokenizer", name_of(run.tokenizer().kind())},
            {"dtype", name_of(run.config().dtype)}}}};
}

json json_of(const PatchedPrompts& p, const Tokenizer& tokenizer, const ModelConfig& config) {
  const auto tokens = [&](const std::vector<Id>& ids) {
    json all = json::array();
    for (const Id id : ids) all.push_back(token_text(tokenizer, id));
    return all;
  };
  json heads = json::array();
  const std::vector<study::HeadId> ids = study::heads_of(config);
  for (std::size_t i = 0; i < ids.size(); ++i)
    heads.push_back(
        {{"layer", ids[i].layer}, {"head", ids[i].head}, {"positions", p.found.effects[i]}});
  return {{"clean", tokens(p.clean)},
          {"corrupt", tokens(p.corrupt)},
          {"answer", token_text(tokenizer, p.found.answer)},
          {"wrong", token_text(tokenizer, p.found.wrong)},
          {"clean_difference", number(p.found.clean_difference)},
          {"corrupt_difference", number(p.found.corrupt_difference)},
          {"heads", std::move(heads)}};
}

json timeline_of(const std::string& log_file) {
  if (!std::filesystem::exists(log_file)) return nullptr;
  json steps = json::array();
  struct Evaluated {
    json val_loss, held_out;
  };
  std::map<Index, Evaluated> evaluated;
  std::istringstream file(read_file(log_file));
  for (std::string text; std::getline(file, text);) {
    json line = json::parse(text, nullptr, false);
    if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer()) continue;
    const json event = line.value("event", json());
    if (event == "eval")
      evaluated[line["step"].get<Index>()] = {line.value("val_loss", json()),
                                              line.value("held_out", json())};
    if (event != "study" || !line.contains("heads")) continue;
    line.erase("event");
    steps.push_back(std::move(line));
  }
  if (steps.empty()) return nullptr;
  for (json& step : steps) {
    const Evaluated& e = evaluated[step["step"].get<Index>()];
    step["val_loss"] = e.val_loss;
    step["held_out"] = e.held_out;
  }
  return steps;
}

}  // namespace headwise::cli
