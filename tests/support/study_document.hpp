// A made-up document of `study`, and patterns to go with it, for tests of the page.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "headwise/study/head.hpp"

namespace headwise::test {

using Json = nlohmann::json;

/// Tokens that a page may stumble over: markup, quotes, white space, control characters, signs that
/// turn the direction, letters beyond ASCII and beyond 16 bits, a lone accent, nothing at all.
inline std::vector<std::string> hostile_tokens() {
  using namespace std::string_literals;
  return {"a<b>&amp;\"'"s,
          "\n"s,
          "\t"s,
          " "s,
          "\0"s,
          "\u202E"s,
          "\u00E9"s,
          "</script><script>document.title='broken'</script>"s,
          "<img src=x onerror=\"document.title='broken'\">"s,
          "\u2028"s,
          "\u2029"s,
          "\u200F\u05D0"s,
          "\u2066"s,
          "\u0301"s,
          "\U0001F600"s,
          "<!--<script>"s,
          "]]>"s,
          "${1}`\\u0041\\"s,
          "\r\n"s,
          "\x1b[31m"s,
          "__proto__"s,
          ""s,
          "\\xff"s,
          "\u00A0"s};
}

/// Words of a text that says things twice, as many as asked for.
inline std::vector<std::string> plain_tokens(Index count) {
  const std::string text =
      "The cat saw the dog. The dog ran home.\nThe bird saw the cat, and the cat ran to the bank "
      "of the river.\n";
  std::vector<std::string> tokens;
  for (Index i = 0; i < count; ++i)
    tokens.emplace_back(1, text[static_cast<std::size_t>(i) % text.size()]);
  return tokens;
}

/// What a head of the made-up model does, by its place.
inline std::string made_up_role(study::HeadId head) {
  if (head.layer == 0)
    return head.head == 1 ? "previous_token" : head.head == 2 ? "first_token" : "";
  return head.head < 2 ? "prefix_matching" : "";
}

/// Row i of such a head's pattern: a quarter spread evenly, the rest where its role looks.
inline void made_up_row(study::HeadId head, const std::vector<std::string>& tokens, Index i,
                        std::span<double> row) {
  const std::string role = made_up_role(head);
  const double rest = role.empty() ? 1.0 : 0.25;
  for (double& a : row) a = rest / static_cast<double>(i + 1);
  Index target = 0;
  if (role == "previous_token") target = std::max<Index>(0, i - 1);
  for (Index j = i; role == "prefix_matching" && j > 0; --j)
    if (tokens[static_cast<std::size_t>(j) - 1] == tokens[static_cast<std::size_t>(i)]) {
      target = j;
      break;
    }
  row[static_cast<std::size_t>(target)] += 1 - rest;
}

namespace made_up {

inline Json score(double value, double chance, const Json& p, const char* on) {
  return {{"value", value}, {"chance", chance}, {"p", p}, {"on", on}};
}

inline Json head(study::HeadId id) {
  const std::string role = made_up_role(id);
  const auto has = [&](const char* name) { return role == name; };
  const double own = 0.01 * static_cast<double>(id.layer * 4 + id.head);
  Json data = {{"previous_token", score(has("previous_token") ? 0.93 : 0.03 + own, 0.04,
                                        has("previous_token") ? 1e-9 : 0.6, "data")},
               {"first_token", score(has("first_token") ? 0.8 : 0.05, 0.06,
                                     has("first_token") ? 1e-6 : 0.4, "data")},
               {"entropy", score(1.2 + own, 2.5, Json(), "data")}};
  Json repeated = data;
  repeated["prefix_matching"] = score(has("prefix_matching") ? 0.86 : 0.02 + own / 4, 0.02,
                                      has("prefix_matching") ? 1e-12 : 0.7, "repeated");
  Json offset = score(has("previous_token") ? 0.93 : 0.08, 0.07, 0.3, "data");
  offset["offset"] = 1;
  data["fixed_offset"] = offset;
  Json scores = data;
  scores["prefix_matching"] = repeated["prefix_matching"];
  const std::string label = has("prefix_matching")  ? "induction"
                            : has("previous_token") ? "previous token"
                            : has("first_token")    ? "first token"
                                                    : "";
  const double lost = has("prefix_matching")  ? 0.11
                      : has("previous_token") ? 0.41
                                              : -0.004 + own / 9;
  return {{"layer", id.layer},
          {"head", id.head},
          {"role", role.empty() ? Json() : Json(role)},
          {"label", label},
          {"scores", scores},
          {"on_data", data},
          {"on_repeated", repeated},
          {"ablation",
           {{"full", lost},
            {"full_error", 0.012},
            {"frozen_patterns", lost * 0.8},
            {"mean", lost * 0.9},
            {"resample", lost}}},
          {"importance", std::abs(lost) / 3},
          {"copying",
           {{"ov_eigenvalues", has("prefix_matching") ? 0.9 : -0.1},
            {"qk_eigenvalues", 0.1},
            {"ov_top1", 0.5 + own},
            {"ov_top5", 0.7}}}};
}

inline Json lens(const std::vector<std::string>& tokens, Index layers) {
  Json names = {"embed"}, top = Json::array();
  for (Index l = 0; l < layers; ++l) names.push_back(fmt::format("after {}", l));
  for (Index l = 0; l <= layers; ++l) {
    Json row = Json::array();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const double p = 0.9 * static_cast<double>(l) / static_cast<double>(layers) + 0.05;
      row.push_back(
          {{{"id", 1}, {"token", tokens[(i + (l == layers ? 1 : 0)) % tokens.size()]}, {"p", p}},
           {{"id", 2}, {"token", tokens[(i + 2) % tokens.size()]}, {"p", (1 - p) / 2}}});
    }
    top.push_back(row);
  }
  return {{"text", 0}, {"layers", names}, {"top", top}};
}

inline Json attribution(const std::vector<std::string>& tokens,
                        const std::vector<study::HeadId>& heads) {
  const std::size_t n = tokens.size();
  Json components = {"embed", "position"}, values = Json::array();
  for (const study::HeadId id : heads) components.push_back(study::name_of(id));
  std::vector<double> sum(n);
  for (std::size_t c = 0; c < components.size(); ++c) {
    std::vector<double> row(n);
    for (std::size_t i = 0; i < n; ++i) {
      row[i] = std::sin(static_cast<double>(c * 7 + i)) +
               (c > 2 && made_up_role(heads[c - 2]) == "prefix_matching" ? 3 : 0);
      sum[i] += row[i];
    }
    values.push_back(row);
  }
  std::vector<double> logits(n);
  for (std::size_t i = 0; i < n; ++i) logits[i] = sum[i] + 0.01;
  return {{"text", 0},
          {"components", components},
          {"logits", logits},
          {"remainder", std::vector<double>(n, 0.01)},
          {"values", values}};
}

/// Scores over the steps: the heads of layer 1 learn suddenly, after those of layer 0.
inline Json timeline(const std::vector<study::HeadId>& heads) {
  Json line = Json::array();
  for (int step = 0; step <= 2000; step += 100) {
    const auto grown = [&](double at) { return 1 / (1 + std::exp((at - step) / 60.0)); };
    Json points = Json::array();
    for (const study::HeadId id : heads) {
      const std::string role = made_up_role(id);
      points.push_back(
          {{"layer", id.layer},
           {"head", id.head},
           {"scores",
            {{"previous_token", role == "previous_token" ? 0.93 * grown(500) : 0.04},
             {"prefix_matching", role == "prefix_matching"
                                     ? 0.86 * grown(900 + 100.0 * static_cast<double>(id.head))
                                     : 0.02}}}});
    }
    const double loss = 3.3 - 0.9 * grown(150) - 0.8 * grown(900);
    line.push_back({{"step", step},
                    {"train_loss", loss},
                    {"val_loss", step % 200 == 0 ? Json(loss + 0.05) : Json()},
                    {"heads", points}});
  }
  return line;
}

}  // namespace made_up

inline std::vector<study::HeadId> made_up_heads(Index layers, Index heads) {
  std::vector<study::HeadId> all;
  for (Index l = 0; l < layers; ++l)
    for (Index h = 0; h < heads; ++h) all.push_back({l, h});
  return all;
}

/// A document with everything that the command may write, over these texts.
inline Json made_up_document(Index layers, Index heads,
                             const std::vector<std::vector<std::string>>& texts) {
  const std::vector<study::HeadId> ids = made_up_heads(layers, heads);
  Json head_list = Json::array(), text_list = Json::array(), pairs = Json::array(),
       norms = Json::object();
  for (const study::HeadId id : ids) head_list.push_back(made_up::head(id));
  for (std::size_t t = 0; t < texts.size(); ++t)
    text_list.push_back(
        {{"name", "data"},
         {"title", fmt::format("held-out data, sequence {} of {}", t + 1, texts.size())},
         {"tokens", texts[t]},
         {"start", 0}});
  for (const study::HeadId from : ids)
    for (const study::HeadId to : ids)
      if (from.layer < to.layer) {
        const bool circuit =
            made_up_role(from) == "previous_token" && made_up_role(to) == "prefix_matching";
        pairs.push_back({{"from", study::name_of(from)},
                         {"to", study::name_of(to)},
                         {"q", 0.13},
                         {"k", circuit ? 0.42 : 0.12},
                         {"v", 0.14}});
      }
  const std::size_t n = texts[0].size();
  for (const study::HeadId id : ids) {
    std::vector<double> row(n);
    for (std::size_t j = 0; j < n; ++j)
      row[j] = j == 0 ? 0.05 : 1 + 0.5 * std::sin(static_cast<double>(j));
    norms[study::name_of(id)] = row;
  }
  Json importance = Json::array(), random = Json::array();
  const auto count = static_cast<double>(ids.size());
  for (std::size_t r = 0; r <= ids.size(); ++r) {
    const double share = static_cast<double>(r) / count;
    importance.push_back({{"removed", r}, {"loss", 1.6 + 1.4 * share * share * share}});
    random.push_back({{"removed", r},
                      {"loss", 1.6 + 1.4 * share},
                      {"least", 1.6 + 1.1 * share},
                      {"most", 1.6 + 1.4 * std::sqrt(share)}});
  }
  Json patched = Json::array();
  const std::vector<std::string> clean = plain_tokens(12), corrupt = plain_tokens(12);
  for (const study::HeadId id : ids) {
    std::vector<double> at(12, 0.01);
    at[11] = made_up_role(id) == "prefix_matching" ? 0.45 : -0.05;
    patched.push_back({{"layer", id.layer}, {"head", id.head}, {"positions", at}});
  }
  return {{"headwise", "0.1.0"},
          {"run", "runs/made up </script>"},
          {"model",
           {{"layers", layers},
            {"heads", heads},
            {"width", 64},
            {"context", n},
            {"vocab", 33},
            {"attention_only", true},
            {"tied", false},
            {"tokenizer", "char"},
            {"parameters", 53000},
            {"dtype", "f32"}}},
          {"settings",
           {{"sequences", 100},
            {"length", n},
            {"seed", 1},
            {"margin", 0.1},
            {"alpha", 0.05},
            {"ablation_sequences", 16}}},
          {"loss", 1.64},
          {"ablated_on", {{"sequences", 16}, {"length", n}}},
          {"texts", text_list},
          {"heads", head_list},
          {"groups",
           {{{"role", "prefix_matching"},
             {"label", "induction"},
             {"heads", {"1.0", "1.1"}},
             {"full", 1.2},
             {"frozen_patterns", 1.1},
             {"mean", 1.0},
             {"resample", 1.1},
             {"sum_of_single", 0.22},
             {"redundant", true}}}},
          {"pruning", {{"by_importance", importance}, {"random", random}}},
          {"composition", {{"baseline", 0.125}, {"pairs", pairs}}},
          {"attribution", {made_up::attribution(texts[0], ids)}},
          {"lens", {made_up::lens(texts[0], layers)}},
          {"value_norms", {{{"text", 0}, {"heads", norms}}}},
          {"timeline", made_up::timeline(ids)},
          {"patching",
           {{"clean", clean},
            {"corrupt", corrupt},
            {"answer", "x"},
            {"wrong", "<y>"},
            {"clean_difference", 3.1},
            {"corrupt_difference", -2.0},
            {"heads", patched}}}};
}

}  // namespace headwise::test
