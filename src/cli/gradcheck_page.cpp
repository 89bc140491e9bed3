#include "cli/gradcheck_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/gradient_map.hpp"
#include "cli/html.hpp"

namespace headwise::cli {
namespace {

constexpr std::string_view kPageStyle = R"css(
.pass, .fail, .inconclusive { font-weight: 600; color: var(--pass); }
.fail { color: var(--fail); } .inconclusive { color: var(--unsure); }
.dot { fill: var(--mark); } .none { fill: none; stroke: var(--mark); }
.curve { fill: none; stroke: var(--mark); stroke-width: 1.5; }
)css";

/// Maps of one check; the worst come first.
constexpr std::size_t kMaps = 6;

std::string badge(Verdict verdict) {
  return fmt::format("<span class=\"{0}\">{0}</span>", name_of(verdict));
}

std::string title_of(const Checked& c) {
  return escaped(c.label.empty() ? c.name : c.name + ": " + c.label);
}

/// Whether a check has a section of its own: it did not pass, or there is nothing else to show.
bool told_of(const Checked& c, std::size_t checks) {
  return c.report.verdict != Verdict::pass || checks == 1;
}

std::string table(const std::vector<Checked>& checks) {
  std::string out =
      "<div class=\"wide\"><table>\n<thead><tr><th>name</th><th>case</th><th>verdict</th>"
      "<th class=\"number\">worst error</th><th class=\"number\">elements</th>"
      "<th class=\"number\">skipped</th><th>where</th></tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const auto& [name, label, r] = checks[i];
    const std::string verdict =
        told_of(checks[i], checks.size())
            ? fmt::format("<a href=\"#check-{}\">{}</a>", i, badge(r.verdict))
            : badge(r.verdict);
    out += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"number\">{:.1e}</td>"
        "<td class=\"number\">{}</td><td class=\"number\">{}</td><td>{}</td></tr>\n",
        escaped(name), escaped(label), verdict, r.worst, r.elements, r.skipped, escaped(r.where));
  }
  return out + "</tbody>\n</table></div>\n";
}

/// The decades that an axis spans, three at least, so that what is flat looks flat.
struct Decades {
  int from = 0, to = 0;

  explicit Decades(const std::vector<double>& values) {
    if (values.empty()) return;
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    from = static_cast<int>(std::floor(std::log10(*least)));
    to = std::max(from + 1, static_cast<int>(std::ceil(std::log10(*most))));
    for (bool down = true; to - from < 3; down = !down) down ? --from : ++to;
  }
  /// 0 to 1.
  [[nodiscard]] double place(double value) const {
    return std::clamp((std::log10(value) - from) / (to - from), 0.0, 1.0);
  }
};

/// Step against difference, both as logarithms. What is not finite is left out.
std::string sweep_plot(const std::vector<SweepStep>& sweep) {
  constexpr int kLeft = 50, kTop = 8, kWidth = 290, kHeight = 180;
  std::vector<double> steps, gaps;
  for (const SweepStep& s : sweep) {
    steps.push_back(s.step);
    if (std::isfinite(s.difference) && s.difference > 0) gaps.push_back(s.difference);
  }
  if (gaps.empty()) return "";
  const Decades across(steps), up(gaps);
  const auto x = [&](double step) { return kLeft + across.place(step) * kWidth; };
  const auto y = [&](double gap) { return kTop + (1 - up.place(gap)) * kHeight; };
  std::string out = fmt::format(
      "<div class=\"wide\"><svg width=\"365\" height=\"{}\" role=\"img\" aria-label=\"difference "
      "between analytic and numeric gradient against the step\">\n",
      kTop + kHeight + 38);
  const auto axis = [&](const Decades& decades, auto draw) {
    const int stride = (decades.to - decades.from + 5) / 6;
    for (int d = decades.from; d <= decades.to; d += stride) out += draw(d, std::pow(10.0, d));
  };
  axis(across, [&](int d, double at) {
    return fmt::format(
        "<path d=\"M{0:.1f} {1}V{2}\" class=\"line\"/><text x=\"{0:.1f}\" y=\"{3}\" "
        "text-anchor=\"middle\">1e{4}</text>\n",
        x(at), kTop, kTop + kHeight, kTop + kHeight + 15, d);
  });
  axis(up, [&](int d, double at) {
    return fmt::format(
        "<path d=\"M{0} {1:.1f}H{2}\" class=\"line\"/><text x=\"{3}\" y=\"{4:.1f}\" "
        "text-anchor=\"end\">1e{5}</text>\n",
        kLeft, y(at), kLeft + kWidth, kLeft - 6, y(at) + 4, d);
  });
  out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">step</text>\n",
                     kLeft + kWidth / 2, kTop + kHeight + 32);
  std::string curve, dots;
  for (const SweepStep& s : sweep) {
    if (!std::isfinite(s.difference)) continue;
    const bool zero = s.difference == 0;
    const double at = zero ? kTop + kHeight : y(s.difference);
    curve += fmt::format("{}{:.1f} {:.1f}", curve.empty() ? 'M' : 'L', x(s.step), at);
    dots += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" class=\"{}\"><title>step "
        "{:.1e}: difference {:.1e}</title></circle>\n",
        x(s.step), at, zero ? "none" : "dot", s.step, s.difference);
  }
  return out + fmt::format("<path d=\"{}\" class=\"curve\"/>\n{}</svg></div>\n", curve, dots);
}

std::string sweep_table(const std::vector<SweepStep>& sweep) {
  std::string out = "<div class=\"wide\"><table>\n<thead><tr>";
  for (const char* head : {"step", "numeric", "left slope", "right slope", "difference"})
    out += fmt::format("<th class=\"number\">{}</th>", head);
  out += "</tr></thead>\n<tbody>\n";
  for (const SweepStep& s : sweep) {
    out += fmt::format("<tr><td class=\"number\">{:.1e}</td>", s.step);
    for (const double x : {s.numeric, s.left, s.right})
      out += fmt::format("<td class=\"number\">{:.9g}</td>", x);
    out += fmt::format("<td class=\"number\">{:.1e}</td></tr>\n", s.difference);
  }
  return out + "</tbody>\n</table></div>\n";
}

/// The tensors that did not pass, those that failed and the worst of them first.
std::vector<const TensorCheck*> to_draw(const GradReport& report) {
  std::vector<const TensorCheck*> tensors;
  for (const TensorCheck& t : report.tensors)
    if (t.verdict != Verdict::pass) tensors.push_back(&t);
  const auto badness = [](const TensorCheck* t) {
    return std::pair(t->verdict == Verdict::fail, std::isfinite(t->worst) ? t->worst : INFINITY);
  };
  std::stable_sort(tensors.begin(), tensors.end(),
                   [&](auto* a, auto* b) { return badness(a) > badness(b); });
  return tensors;
}

std::string maps(const GradReport& report) {
  const std::vector<const TensorCheck*> tensors = to_draw(report);
  if (tensors.empty()) return "";
  std::string out =
      "<h3>The error over the tensor</h3>\n<p class=\"quiet\">|analytic - numeric|, "
      "relative to the largest gradient of the tensor; the worst is outlined.</p>\n" +
      map_legend(report.tolerance);
  for (std::size_t i = 0; i < std::min(kMaps, tensors.size()); ++i)
    out += gradient_map(*tensors[i], report.tolerance);
  if (tensors.size() > kMaps)
    out += fmt::format("<p>{} more tensors did not pass; the worst {} are drawn.</p>\n",
                       tensors.size() - kMaps, kMaps);
  return out;
}

std::string section(const Checked& c, std::size_t i) {
  std::string out = fmt::format("<section id=\"check-{}\">\n<h2>{} {}</h2>\n<pre>{}</pre>\n", i,
                                title_of(c), badge(c.report.verdict), escaped(describe(c.report)));
  if (const auto& sweep = c.report.diagnosis.sweep; !sweep.empty())
    out +=
        "<h3>The difference, step by step</h3>\n<p class=\"quiet\">|analytic - numeric| at the "
        "worst element. Flat: the gradient is wrong. Left and right slope apart: a kink. Grows "
        "as the step shrinks: rounding.</p>\n" +
        sweep_plot(sweep) + sweep_table(sweep);
  return out + maps(c.report) + "</section>\n";
}

}  // namespace

std::string Tally::text() const {
  return fmt::format("{} passed, {} failed, {} inconclusive", passed, failed, inconclusive);
}

std::string gradcheck_page(const std::vector<Checked>& checks,
                           const std::vector<std::string>& facts) {
  Tally tally;
  for (const Checked& c : checks) tally.add(c.report.verdict);
  std::string body = std::string(kMapHatching) + "<h1>Gradient check</h1>\n" +
                     fmt::format("<p><strong>{}</strong></p>\n", tally.text());
  for (const std::string& fact : facts) body += fmt::format("<p>{}</p>\n", escaped(fact));
  for (const Verdict verdict : {Verdict::fail, Verdict::inconclusive}) {
    std::string list;
    for (std::size_t i = 0; i < checks.size(); ++i)
      if (checks[i].report.verdict == verdict)
        list += fmt::format("{}<a href=\"#check-{}\">{}</a>", list.empty() ? " " : ", ", i,
                            title_of(checks[i]));
    if (!list.empty()) body += fmt::format("<p>{}:{}</p>\n", badge(verdict), list);
  }
  body += table(checks);
  for (std::size_t i = 0; i < checks.size(); ++i)
    if (told_of(checks[i], checks.size())) body += section(checks[i], i);
  return html_page("Gradient check: " + tally.text(), fmt::format("{}{}", kPageStyle, kMapStyle),
                   body);
}

}  // namespace headwise::cli
