// headwise gradcheck [NAME...]: proves the gradients of ops, layers and models, or of a run.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>

#include "cli/gradcheck_json.hpp"
#include "cli/gradcheck_page.hpp"
#include "cli/gradcheck_run.hpp"
#include "cli/gradcheck_table.hpp"
#include "cli/message.hpp"
#include "cli/options.hpp"
#include "cli/output_guard.hpp"
#include "cli/progress.hpp"
#include "headwise/core/file.hpp"
#include "headwise/models/decoder_cases.hpp"
#include "headwise/nn/layer_table.hpp"
#include "headwise/ops/op_table.hpp"
#include "headwise/train/run.hpp"

namespace headwise::cli {
namespace {

constexpr double kRunSeconds = 20;

struct GradcheckCommand {
  std::vector<std::string> names;
  std::string run, html;
  double seconds = 0;
  Dtype dtype = Dtype::f64;
  bool fast = false, verbose = false, json_lines = false, force = false;

  void visit(auto&& v) {
    v("run", run, "check the model of this run on its own data, some elements of each parameter");
    v("html", html, "file for a page with the table, and what is wrong drawn over the tensors");
    v("seconds", seconds, "time to spend, then fewer elements; 0: no limit, for a run 20");
    v("dtype", dtype, "precision; float is held to looser bounds");
    v("fast", fast, "compare one random direction of each input instead of its elements");
    v("verbose", verbose, "a line a case, as with names");
    v("json", json_lines, "JSON lines on stdout, nothing else");
    v("force", force, kForceHelp);
  }
  /// Throws UsageError, naming option and value.
  void validate() const {
    require<UsageError>(std::isfinite(seconds) && seconds >= 0,
                        "--seconds: must be finite and >= 0, got {}", seconds);
    require<UsageError>(run.empty() || names.empty(),
                        "--run: checks a whole run, without names, got '{}'",
                        names.empty() ? "" : names.front());
    require<UsageError>(run.empty() || dtype == Dtype::f64,
                        "--dtype: a run is checked in double, whatever it was trained in");
    if (html.empty()) return;
    const std::filesystem::path folder = std::filesystem::path(html).parent_path();
    require<UsageError>(!std::filesystem::is_directory(html), "--html: {} is a folder", html);
    require<UsageError>(folder.empty() || std::filesystem::is_directory(folder),
                        "--html: there is no folder {}", folder.string());
  }
  [[nodiscard]] bool in_double() const { return dtype == Dtype::f64; }
  [[nodiscard]] double tolerance() const {
    return in_double() ? kGradTolerance : kGradToleranceFloat;
  }
};

template <Real T>
std::vector<GradCase> all_cases(std::uint64_t seed) {
  std::vector<GradCase> all = op_cases<T>(seed);
  for (std::vector<GradCase> more : {layer_cases<T>(seed), decoder_cases<T>(seed)})
    std::move(more.begin(), more.end(), std::back_inserter(all));
  return all;
}

/// Those with one of the names, or all for none. Throws UsageError for a name that none has.
std::vector<GradCase> chosen(std::vector<GradCase> all, const std::vector<std::string>& names) {
  if (names.empty()) return all;
  std::vector<std::string> known;
  for (const GradCase& c : all) known.push_back(c.name);
  // Ops before layers, which begin with a capital letter.
  std::sort(known.begin(), known.end(), [](const std::string& a, const std::string& b) {
    const auto key = [](const std::string& x) {
      return std::pair(std::isupper(static_cast<unsigned char>(x[0])) != 0, x);
    };
    return key(a) < key(b);
  });
  known.erase(std::unique(known.begin(), known.end()), known.end());
  const auto among = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (const std::string& name : names)
    require<UsageError>(among(known, name), "gradcheck: no op or layer is called '{}'; known: {}",
                        name, fmt::join(known, ", "));
  std::erase_if(all, [&](const GradCase& c) { return !among(names, c.name); });
  return all;
}

/// Makes the checks one after the other, `tell` being called after each, with its number.
std::vector<Checked> run_checks(const std::vector<GradCase>& cases, GradOptions options,
                                FunctionRef<void(const std::vector<Checked>&)> tell) {
  using Clock = std::chrono::steady_clock;
  const double budget = options.seconds;
  const auto start = Clock::now();
  Progress progress(static_cast<Index>(cases.size()), 0);
  std::vector<Checked> done;
  for (const GradCase& c : cases) {
    const std::string title = fmt::format("{}: {}", c.name, c.label);
    progress.show(static_cast<Index>(done.size()), title);
    if (budget > 0) {  // an equal part of what is left
      const double spent = std::chrono::duration<double>(Clock::now() - start).count();
      options.seconds = std::max(1e-3, budget - spent) /  // 0 would be no limit
                        static_cast<double>(cases.size() - done.size());
    }
    try {
      done.push_back({c.name, c.label, c.check(options)});
    } catch (const Error& e) {
      throw Error(fmt::format("gradcheck: {}: {}", title, e.what()));
    }
    progress.clear();
    tell(done);
    flush_output();
  }
  return done;
}

/// What the head of the page says.
std::vector<std::string> facts_of(const GradcheckCommand& c, std::uint64_t seed) {
  std::vector<std::string> facts;
  if (!c.run.empty())
    facts.push_back(fmt::format("The model of the run {}, on its own data.", c.run));
  else if (c.names.empty())
    facts.push_back("Every op, every layer and a whole small decoder.");
  else
    facts.push_back(fmt::format("Of all ops and layers: {}.", fmt::join(c.names, ", ")));
  facts.push_back(fmt::format("headwise {}, in {}, tolerance {:.0e}, seed {}{}.", HEADWISE_VERSION,
                              c.in_double() ? "double" : "float", c.tolerance(), seed,
                              c.fast ? ", one random direction of each input" : ""));
  return facts;
}

/// What the verdicts do not rest on: elements that were left out, and all but one direction.
void print_limits(const std::vector<Checked>& done, const GradcheckCommand& c) {
  Index looked_at = 0, all = 0;
  for (const Checked& one : done)
    for (const TensorCheck& t : one.report.tensors)
      if (t.elements > 0) looked_at += t.elements, all += t.shape.size();
  if (looked_at < all) fmt::print("{} of {} elements were looked at.\n", looked_at, all);
  if (c.fast)
    fmt::print(
        "One random direction of each input: an error of 1 % of its gradient goes unseen with "
        "probability {:.1e}.\n",
        chance_of_miss(1e-2, c.tolerance()));
  if (!c.in_double())
    fmt::print(
        "In float, with steps of 5e-03 and more, only coarse mistakes show; double proves.\n");
}

int gradcheck(const GradcheckCommand& c, std::uint64_t seed) {
  c.validate();
  OutputGuard guard(c.force);
  if (!c.run.empty()) guard.reads(Run::open(c.run));
  guard.writes("--html", c.html, Output::page);
  const std::vector<GradCase> cases = !c.run.empty()  ? std::vector{run_case(c.run, seed)}
                                      : c.in_double() ? chosen(all_cases<double>(seed), c.names)
                                                      : chosen(all_cases<float>(seed), c.names);
  GradOptions options;
  options.fast = c.fast;
  options.seed = seed;
  options.seconds = c.seconds == 0 && !c.run.empty() ? kRunSeconds : c.seconds;

  std::optional<GradcheckTable> table;
  if (!c.json_lines)
    table.emplace(cases, !c.run.empty()                  ? Rows::tensors
                         : c.verbose || !c.names.empty() ? Rows::cases
                                                         : Rows::names);
  const std::vector<Checked> done =
      run_checks(cases, options, [&](const std::vector<Checked>& so_far) {
        table ? table->tell(so_far)
              : fmt::print("{}\n", check_line(so_far.back(), name_of(c.dtype)));
      });
  Tally tally;
  for (const Checked& one : done) tally.add(one.report.verdict);
  if (!c.html.empty()) replace_file(c.html, gradcheck_page(done, facts_of(c, seed)));
  if (c.json_lines) {
    fmt::print("{}\n", done_line(tally));
  } else {
    print_diagnoses(done);
    fmt::print("{}; tolerance {:.0e}, in {}\n", tally.text(), c.tolerance(),
               c.in_double() ? "double" : "float");
    print_limits(done, c);
  }
  return tally.failed + tally.inconclusive == 0 ? kDone : kFailed;
}

}  // namespace

Action gradcheck_command(Arguments& args, CommonOptions& common) {
  const auto c = std::make_shared<GradcheckCommand>();
  args.add_list("name", "NAME...",
                "ops (attention), layers (MultiHeadAttention) or Decoder; none: everything",
                c->names);
  args.bind(*c);
  args.footer(
      "Exit code 0: every check passed. 1: one failed, or is inconclusive: it proved nothing,\n"
      "since more than 10 % of its elements are near a kink, its gradient is below what rounding\n"
      "hides, or its result is not finite one step away, whatever the step. In float as well, "
      "where\n"
      "larger steps are tried first. 2: the command line is wrong.");
  return [c, &common] { return gradcheck(*c, common.seed); };
}

}  // namespace headwise::cli
