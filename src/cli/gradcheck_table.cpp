#include "cli/gradcheck_table.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "headwise/core/parse.hpp"

namespace headwise::cli {
namespace {

/// Columns of the terminal that stdout is, or 0.
std::size_t terminal_width() {
  ::winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/// "blocks.0.ln1.weight, element 7" in so many columns, the end being what tells most: as it is,
/// or "blocks.0.ln1.weight[7]", or "…0.ln1.weight[7]".
std::string shortened(std::string where, std::size_t room) {
  constexpr std::string_view kElement = ", element ";
  const std::size_t at = where.rfind(kElement);
  if (where.size() > room && at != std::string::npos)
    where = where.substr(0, at) + '[' + where.substr(at + kElement.size()) + ']';
  if (where.size() > room && room > 0) where = "…" + where.substr(where.size() - room + 1);
  return where;
}

bool worse(const GradReport& a, const GradReport& b) {
  const auto badness = [](const GradReport& r) {
    const int verdict = r.verdict == Verdict::fail ? 2 : r.verdict == Verdict::inconclusive ? 1 : 0;
    return std::pair(verdict, std::isnan(r.worst) ? INFINITY : r.worst);
  };
  return badness(a) > badness(b);
}

std::string word(Verdict verdict) {
  return verdict == Verdict::fail ? "FAIL" : std::string(name_of(verdict));
}

std::string worst_of(double worst) { return fmt::format("{:.1e}", worst); }

}  // namespace

GradcheckTable::GradcheckTable(const std::vector<GradCase>& cases, Rows rows)
    : cases_(cases), rows_(rows), width_(terminal_width()) {
  if (rows == Rows::tensors) return;  // none is known yet
  for (const GradCase& c : cases)
    first_ = std::max(first_, rows == Rows::names ? c.name.size() : c.label.size() + 2);
  print_head();
}

void GradcheckTable::print(std::string_view first, const auto& cases, const auto& elements,
                           std::string_view worst, std::string_view verdict,
                           const std::string& where) const {
  const std::string count = rows_ == Rows::names ? fmt::format("{:>5}  ", cases) : "";
  const std::string line =
      fmt::format("{:{}}  {}{:>8}  {:>7}  {:12}  ", first, first_, count, elements, worst, verdict);
  const std::size_t room = width_ == 0 ? where.size() : width_ - std::min(width_, line.size());
  fmt::print("{}{}\n", line, shortened(where, room));
}

void GradcheckTable::print_head() const {
  constexpr std::string_view kFirst[] = {"name", "name, case", "parameter"};
  print(kFirst[static_cast<int>(rows_)], "cases", "elements", "worst", "verdict", "where");
}

/// All cases of a name.
void GradcheckTable::print_name(std::span<const Checked> of_name) const {
  const Checked* worst = &of_name.front();
  Index elements = 0;
  for (const Checked& c : of_name) {
    elements += c.report.elements;
    if (worse(c.report, worst->report)) worst = &c;
  }
  const GradReport& r = worst->report;
  print(worst->name, of_name.size(), elements, worst_of(r.worst), word(r.verdict),
        worst->label + ": " + r.where);
}

void GradcheckTable::print_tensors(const Checked& c) {
  for (const TensorCheck& t : c.report.tensors) first_ = std::max(first_, t.name.size());
  print_head();
  for (const TensorCheck& t : c.report.tensors)
    print(t.name, "", t.elements, worst_of(t.worst), word(t.verdict),
          fmt::format("element {}{}{}", t.at, t.note.empty() ? "" : "; ", t.note));
}

void GradcheckTable::tell(const std::vector<Checked>& so_far) {
  const Checked& last = so_far.back();
  const GradReport& r = last.report;
  const auto same_name = [&](const auto& other) { return other.name == last.name; };
  if (rows_ == Rows::tensors) {
    print_tensors(last);
  } else if (rows_ == Rows::cases) {
    if (so_far.size() == 1 || !same_name(so_far[so_far.size() - 2])) fmt::print("{}\n", last.name);
    print("  " + last.label, "", r.elements, worst_of(r.worst), word(r.verdict), r.where);
  } else if (so_far.size() == cases_.size() || !same_name(cases_[so_far.size()])) {
    const auto others = std::find_if_not(so_far.rbegin(), so_far.rend(), same_name);
    print_name({others.base(), so_far.end()});
  }
}

void print_diagnoses(const std::vector<Checked>& checks) {
  for (const Checked& c : checks) {
    if (c.report.verdict == Verdict::pass) continue;
    fmt::print("\n{} {}: {}\n", word(c.report.verdict), c.name, c.label);
    const std::string text = describe(c.report);
    for (std::size_t from = 0; from < text.size();) {
      const std::size_t end = std::min(text.find('\n', from), text.size());
      fmt::print("  {}\n", text.substr(from, end - from));
      from = end + 1;
    }
  }
  if (std::any_of(checks.begin(), checks.end(),
                  [](const Checked& c) { return c.report.verdict != Verdict::pass; }))
    fmt::print("\n");
}

}  // namespace headwise::cli
