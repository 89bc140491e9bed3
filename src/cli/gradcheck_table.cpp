#include "cli/gradcheck_table.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "headwise/core/parse.hpp"

namespace headwise::cli {
namespace {

/// Columns between the first and "where", and what "where" needs at least.
constexpr std::size_t kNumbers = 34, kWhere = 20;

/// Columns of the terminal that stdout is, or 0.
std::size_t terminal_width() {
  ::winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/// Where something stands, in so many columns; the end tells most. The first of these that fits:
/// "tied: ln_f.weight, element 7", "ln_f.weight, element 7", "ln_f.weight[7]", "…f.weight[7]".
std::string shortened(const std::string& label, std::string where, std::size_t room) {
  constexpr std::string_view kElement = ", element ";
  if (!label.empty() && label.size() + 2 + where.size() <= room) return label + ": " + where;
  const std::size_t at = where.rfind(kElement);
  if (where.size() > room && at != std::string::npos)
    where = where.substr(0, at) + '[' + where.substr(at + kElement.size()) + ']';
  if (where.size() > room && room > 0) where = "…" + where.substr(where.size() - room + 1);
  return where;
}

/// A name that does not fit: its beginning.
std::string cut(std::string_view name, std::size_t room) {
  return name.size() <= room ? std::string(name) : std::string(name.substr(0, room - 1)) + "…";
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
  std::size_t longest = 0;
  for (const GradCase& c : cases)
    longest = std::max(longest, rows == Rows::names ? c.name.size() : c.label.size() + 2);
  begin(longest);
}

void GradcheckTable::begin(std::size_t longest) {
  constexpr std::string_view kFirst[] = {"name", "name, case", "parameter"};
  const std::string_view first = kFirst[static_cast<int>(rows_)];
  first_ = std::max(longest, first.size());
  if (width_ != 0 && rows_ != Rows::names)
    first_ = std::clamp(width_ - std::min(width_, kNumbers + kWhere), first.size(), first_);
  print(first, "cases", "elements", "worst", "verdict", "where");
}

void GradcheckTable::print(std::string_view first, const auto& cases, const auto& elements,
                           std::string_view worst, std::string_view verdict,
                           const std::string& where, const std::string& label) const {
  const std::string count = rows_ == Rows::names ? fmt::format("{:>5}  ", cases) : "";
  const std::size_t used = first_ + count.size() + kNumbers;
  const std::size_t room = width_ == 0 ? std::string::npos : width_ - std::min(width_, used);
  fmt::print("{:{}} {}{:>8}  {:>7}  {:12}  {}\n", cut(first, first_), first_, count, elements,
             worst, verdict, shortened(label, where, room));
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
  print(worst->name, of_name.size(), elements, worst_of(r.worst), word(r.verdict), r.where,
        worst->label);
}

void GradcheckTable::print_tensors(const Checked& c) {
  std::size_t longest = 0;
  for (const TensorCheck& t : c.report.tensors) longest = std::max(longest, t.name.size());
  begin(longest);
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
