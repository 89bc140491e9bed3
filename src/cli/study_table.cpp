#include "cli/study_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/utf8.hpp"

namespace headwise::cli {

using study::HeadStudy, study::Measure, study::Score;

namespace {

std::string p_text(double p) { return p < 1e-99 ? "<1e-99" : fmt::format("{:.0e}", p); }

/// "+0.412", or "" for what could not be measured.
std::string rise(double x) { return std::isfinite(x) ? fmt::format("{:+.3f}", x) : "-"; }

/// "+0.412 ±0.013"; of one sequence, "+0.412".
std::string full(const study::Effect& e) {
  return std::isfinite(e.full_error) ? fmt::format("{} ±{:.3f}", rise(e.full), e.full_error)
                                     : rise(e.full);
}

/// Words on lines of their own, indented.
void print_wrapped(const std::vector<std::string>& words) {
  constexpr std::size_t kWidest = 100;
  std::string line;
  for (const std::string& word : words) {
    if (line.size() + word.size() > kWidest) {
      fmt::print("   {}\n", line);
      line.clear();
    }
    line += ' ' + word;
  }
  fmt::print("   {}\n", line);
}

void print_roles(const Findings& f) {
  fmt::print("{:6}{:23}{:>6}{:>8}{:>10}{:>8}   {:>14}{:>8}{:>12}\n", "head", "role", "score",
             "chance", "position", "p", "without", "frozen", "importance");
  for (std::size_t i = 0; i < f.heads.size(); ++i) {
    const HeadStudy& head = f.heads[i];
    const study::Effect& cost = f.causes.heads[i];
    std::string role = fmt::format("{:23}{:32}", "-", "");
    if (head.role) {
      const Measure& m = *head.score(*head.role);
      const double explained = study::explained(head, *head.role);
      role = fmt::format("{:23}{:6.3f}{:8.3f}{:>10}{:>8}", head.label, m.value, m.chance,
                         explained > m.chance ? fmt::format("{:.3f}", explained) : "",
                         p_text(head.corrected_p));
    }
    fmt::print("{:6}{}   {:>14}{:>8}{:12.4f}\n", name_of(head.id), role, full(cost),
               rise(cost.frozen_patterns), f.causes.importance[i]);
  }
  fmt::print(
      "\n  score     by which the role is named, at least {} above chance and above what position "
      "explains\n"
      "  chance    the same for weights dealt at random; position: the best fixed offset's, where "
      "it is more\n"
      "  p         bound of a permutation test, corrected for all heads and roles tried (Holm)\n"
      "  without   rise of the loss, nats a token, with the head zeroed, and its standard error; "
      "frozen:\n"
      "            with all patterns held; ablated on {} sequences of {} tokens\n"
      "  importance  gradient of the loss by the head's gate (Michel et al. 2019)\n",
      study::RoleRule{}.margin, f.causes.sequences, f.causes.length);
}

void print_groups(const Causes& c) {
  fmt::print("\n{:23}{:>14}{:>8}{:>8}{:>10}{:>11}\n", "together", "zero", "frozen", "mean",
             "resample", "one by one");
  for (const GroupFinding& g : c.groups) {
    const study::Effect& e = g.group.joint;
    const bool wide = g.label.size() > 22;
    if (wide) fmt::print("{}\n", g.label);
    fmt::print("{:23}{:>14}{:>8}{:>8}{:>10}{:>11}\n", wide ? "" : g.label, full(e),
               rise(e.frozen_patterns), rise(e.mean), rise(e.resample),
               rise(g.group.sum_of_single));
    std::vector<std::string> words;
    for (const study::HeadId id : g.group.heads) words.push_back(name_of(id));
    if (g.alike && g.group.redundant)
      words.back() +=
          g.role ? "; redundant: each stands in for the others" : "; more together than one by one";
    print_wrapped(words);
  }
}

/// The first head's measure of a score that has one.
const Measure* any_measure(const std::vector<HeadStudy>& heads, Score score) {
  for (const HeadStudy& head : heads)
    if (const Measure* const m = head.score(score)) return m;
  return nullptr;
}

void print_scores(const std::vector<HeadStudy>& heads) {
  std::vector<Score> shown;
  for (std::size_t i = 0; i < names_of(Score{}).size(); ++i)
    if (any_measure(heads, static_cast<Score>(i)) != nullptr)
      shown.push_back(static_cast<Score>(i));
  static constexpr const char* kShort[] = {"previous", "current", "first",   "offset",  "duplic.",
                                           "induct.",  "copying", "entropy", "confid.", "distance",
                                           "local",    "subject", "antec.",  "sense"};
  fmt::print(
      "\nevery score (offset: the best one, @ which; * p below 0.001, of entropy, confidence and "
      "distance\n"
      "among untrained heads), its chance, and what the best rule that knows places alone reaches\n"
      "{:9}",
      "head");
  for (const Score s : shown) fmt::print("{:>10}", kShort[static_cast<std::size_t>(s)]);
  fmt::print("\n");
  for (const HeadStudy& head : heads) {
    fmt::print("{:9}", name_of(head.id));
    for (const Score s : shown) {
      const Measure* const m = head.score(s);
      std::string text = m == nullptr ? "-" : fmt::format("{:.3f}", m->value);
      if (m != nullptr && s == Score::fixed_offset) text += fmt::format("@{}", m->offset);
      text += m != nullptr && m->p.value_or(1) < 1e-3 ? "*" : " ";
      fmt::print("{:>10}", text);
    }
    fmt::print("\n");
  }
  fmt::print("{:9}", "chance");
  for (const Score s : shown) fmt::print("{:>9.3f} ", any_measure(heads, s)->chance);
  fmt::print("\n");
  const auto by_place = [&](Score s) {
    const Measure& m = *any_measure(heads, s);
    return std::max(m.baseline, m.baseline_place);
  };
  if (std::none_of(shown.begin(), shown.end(), [&](Score s) { return by_place(s) > 0; })) return;
  fmt::print("{:9}", "places");
  for (const Score s : shown)
    fmt::print("{:>9} ", by_place(s) > 0 ? fmt::format("{:.3f}", by_place(s)) : "");
  fmt::print("\n");
}

void print_circuits(const Findings& f) {
  fmt::print(
      "\nfrom the weights: eigenvalues' sum by the sum of their sizes, from -1 to 1, of the OV "
      "circuit (copying)\n"
      "and of the QK circuit (tokens matching themselves); tokens that the OV circuit raises most, "
      "or among five\n"
      "{:9}{:>8}{:>8}{:>8}{:>8}\n",
      "head", "OV", "QK", "top 1", "top 5");
  for (std::size_t i = 0; i < f.heads.size(); ++i)
    fmt::print("{:9}{:8.3f}{:8.3f}{:8.3f}{:8.3f}\n", name_of(f.heads[i].id), f.weights.ov[i],
               f.weights.qk[i], f.weights.copying[i].top1, f.weights.copying[i].top5);
}

void print_composition(const Findings& f, const ModelConfig& config) {
  const double baseline = study::composition_baseline(config.width);
  struct Path {
    const study::Composition* pair;
    const char* by;
    double value;
  };
  std::vector<Path> paths;
  for (const study::Composition& c : f.weights.composition) {
    paths.push_back({&c, "queries", c.q - baseline});
    paths.push_back({&c, "keys", c.k - baseline});
    paths.push_back({&c, "values", c.v - baseline});
  }
  if (paths.empty()) return;
  std::stable_sort(paths.begin(), paths.end(),
                   [](const Path& a, const Path& b) { return a.value > b.value; });
  paths.resize(std::min<std::size_t>(paths.size(), 8));
  fmt::print("\nstrongest compositions, above the {:.3f} of random matrices\n", baseline);
  for (const Path& p : paths)
    fmt::print("  {} feeds the {:7} of {}: {:+.3f}\n", name_of(p.pair->from), p.by,
               name_of(p.pair->to), p.value);
}

void print_pruning(const study::PruningCurve& curve) {
  fmt::print("\nheads taken away, the least important first, and in random order: loss\n  ");
  for (const auto& p : curve.by_importance) fmt::print("{:>8}", p.removed);
  fmt::print("\n  ");
  for (const auto& p : curve.by_importance) fmt::print("{:8.3f}", p.loss);
  fmt::print("\n  ");
  for (const auto& p : curve.random) fmt::print("{:8.3f}", p.loss);
  fmt::print("\n");
}

}  // namespace

void print_findings(const Findings& f, const ModelConfig& config) {
  print_roles(f);
  print_groups(f.causes);
  print_scores(f.heads);
  print_composition(f, config);
  print_circuits(f);
  print_pruning(f.causes.pruning);
}

void print_patching(const PatchedPrompts& p, const Tokenizer& tokenizer,
                    const ModelConfig& config) {
  const std::vector<study::HeadId> ids = study::heads_of(config);
  struct Place {
    study::HeadId head;
    std::size_t position;
    double effect;
  };
  std::vector<Place> places;
  for (std::size_t h = 0; h < ids.size(); ++h)
    for (std::size_t t = 0; t < p.clean.size(); ++t)
      places.push_back({ids[h], t, p.found.effects[h][t]});
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::abs(a.effect) > std::abs(b.effect);
  });
  places.resize(std::min<std::size_t>(places.size(), 8));
  const auto token = [&](Id id) {
    return fmt::format("\"{}\"", visible(token_text(tokenizer, id)));
  };
  fmt::print(
      "\nlogit of {} above that of {}: {:.3f} after the clean prompt, {:.3f} after the corrupt "
      "one;\n"
      "put one head's work at one place of the clean run into the corrupt one, and that much comes "
      "back:\n",
      token(p.found.answer), token(p.found.wrong), p.found.clean_difference,
      p.found.corrupt_difference);
  for (const Place& place : places)
    fmt::print("  {:6} at {:3} ({}): {:+.3f}\n", name_of(place.head), place.position,
               token(p.clean[place.position]), place.effect);
}

std::string visible(const std::string& token) {
  std::string out;
  for (std::size_t at = 0; at < token.size();) {
    const auto point = code_point_at(token, at);
    const std::size_t bytes = point ? point->bytes : 1;
    const char32_t c = point ? point->value : static_cast<unsigned char>(token[at]);
    if (c == ' ')
      out += "␠";
    else if (c == '\n')
      out += "⏎";
    else if (c == '\t')
      out += "⇥";
    else if (!point)
      out += fmt::format("\\x{:02x}", static_cast<std::uint32_t>(c));
    else if (is_invisible(c))
      out += fmt::format("U+{:04X}", static_cast<std::uint32_t>(c));
    else
      out += token.substr(at, bytes);
    at += bytes;
  }
  return out;
}

template <Real T>
void print_pattern(PatternsOfTexts<T>& patterns, study::HeadId head, const ShownText& text,
                   const Tokenizer& tokenizer) {
  static constexpr const char* kShades[] = {" ", "·", "░", "▒", "▓", "█"};
  constexpr Index kWidest = 96, kLabel = 12;
  const Index time = text.range.end - text.range.begin;
  const Index wide = (time + kWidest - 1) / kWidest;  // keys a cell: the most of them is shown
  fmt::print("\nhead {}, {}: a line for each query, a cell for each {}\n", name_of(head),
             text.title, wide == 1 ? "key" : fmt::format("{} keys, the most attended", wide));
  fmt::print("weight:  · from 0.02   ░ 0.1   ▒ 0.25   ▓ 0.5   █ 0.75\n");
  std::vector<double> row;
  for (Index i = 0; i < time; ++i) {
    row.assign(static_cast<std::size_t>(i + 1), 0);
    patterns.row(0, head, i, row);
    const Id id = text.ids[static_cast<std::size_t>(text.range.begin + i)];
    std::string label = visible(token_text(tokenizer, id));
    label = fmt::format("{:>5} {:{}}", text.range.begin + i, label, kLabel - 6);
    std::string cells;
    for (Index j = 0; j <= i; j += wide) {
      const double most =
          *std::max_element(row.begin() + j, row.begin() + std::min(i + 1, j + wide));
      const int shade = most < 0.02   ? 0
                        : most < 0.1  ? 1
                        : most < 0.25 ? 2
                        : most < 0.5  ? 3
                        : most < 0.75 ? 4
                                      : 5;
      cells += kShades[shade];
    }
    fmt::print("{} {}\n", label, cells);
  }
}

template void print_pattern(PatternsOfTexts<float>&, study::HeadId, const ShownText&,
                            const Tokenizer&);
template void print_pattern(PatternsOfTexts<double>&, study::HeadId, const ShownText&,
                            const Tokenizer&);

}  // namespace headwise::cli
