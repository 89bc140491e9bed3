// headwise gradcheck [NAME...]: proves the gradients of ops, a line a case.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/options.hpp"
#include "headwise/ops/op_table.hpp"

namespace headwise::cli {
namespace {

struct GradcheckCommand {
  std::vector<std::string> names;
  bool json_lines = false;

  void visit(auto&& v) { v("json", json_lines, "JSON lines on stdout, nothing else"); }
};

void print_line(const std::string& op, const std::string& label, const GradReport& r) {
  fmt::print("{:14} {:26} {:5} elements  worst {:.1e}  {}", op, label, r.elements, r.worst,
             name_of(r.verdict));
  if (r.verdict != Verdict::pass)
    fmt::print("  {}: analytic {:.9g}, numeric {:.9g}", r.where, r.analytic, r.numeric);
  fmt::print("\n");
}

void print_json(const std::string& op, const std::string& label, const GradReport& r) {
  const auto number = [](double x) {
    return std::isfinite(x) ? nlohmann::json(x) : nlohmann::json(nullptr);
  };
  fmt::print("{}\n", nlohmann::json{{"event", "check"},
                                    {"name", op},
                                    {"case", label},
                                    {"dtype", "f64"},
                                    {"elements", r.elements},
                                    {"skipped", 0},
                                    {"worst", number(r.worst)},
                                    {"where", r.where},
                                    {"analytic", number(r.analytic)},
                                    {"numeric", number(r.numeric)},
                                    {"verdict", name_of(r.verdict)}}
                         .dump());
}

int gradcheck_ops(const GradcheckCommand& c, std::uint64_t seed) {
  const std::vector<OpSpec> all = op_table();
  std::vector<std::string> known;
  for (const OpSpec& spec : all) known.push_back(spec.name);
  std::sort(known.begin(), known.end());
  for (const std::string& name : c.names)
    require<UsageError>(std::binary_search(known.begin(), known.end(), name),
                        "gradcheck: no op or layer is called '{}'; known: {}", name,
                        fmt::join(known, ", "));

  Index count[3] = {};
  for (const OpSpec& spec : all) {
    if (!c.names.empty() && std::find(c.names.begin(), c.names.end(), spec.name) == c.names.end())
      continue;
    for (const OpCase& one : spec.cases) {
      const GradReport report = headwise::gradcheck(one.f64, random_inputs(one, seed));
      ++count[static_cast<int>(report.verdict)];
      (c.json_lines ? print_json : print_line)(spec.name, one.label, report);
    }
  }
  const auto of = [&](Verdict v) { return count[static_cast<int>(v)]; };
  if (c.json_lines)
    fmt::print("{}\n", nlohmann::json{{"event", "done"},
                                      {"passed", of(Verdict::pass)},
                                      {"failed", of(Verdict::fail)},
                                      {"inconclusive", of(Verdict::inconclusive)}}
                           .dump());
  else
    fmt::print("{} passed, {} failed, {} inconclusive; tolerance {:.0e}, in double\n",
               of(Verdict::pass), of(Verdict::fail), of(Verdict::inconclusive), kGradTolerance);
  return of(Verdict::fail) + of(Verdict::inconclusive) == 0 ? kDone : kFailed;
}

}  // namespace

std::function<int()> gradcheck_command(CLI::App& app, CommonOptions& common) {
  const auto c = std::make_shared<GradcheckCommand>();
  app.add_option("name", c->names, "ops to check; none: all")->type_name("NAME...");
  bind(app, *c);
  return [c, &common] { return gradcheck_ops(*c, common.seed); };
}

}  // namespace headwise::cli
