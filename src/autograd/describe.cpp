#include <algorithm>
#include <cmath>

#include "headwise/autograd/gradcheck.hpp"

namespace headwise {
namespace {

/// Of many tensors, those that did not pass are in the table.
bool is_row(const TensorCheck& t, std::size_t tensors) {
  constexpr std::size_t kFew = 8;
  return tensors <= kFew || t.verdict != Verdict::pass;
}

/// "12", or "12 of 10000" where not all were looked at.
std::string elements_of(const TensorCheck& t) {
  return t.elements == t.shape.size() ? fmt::format("{}", t.elements)
                                      : fmt::format("{} of {}", t.elements, t.shape.size());
}

std::string table(const std::vector<TensorCheck>& tensors) {
  std::size_t width = 6, counts = 8, passed = 0;
  for (const TensorCheck& t : tensors) {
    width = std::max(width, t.name.size());
    if (is_row(t, tensors.size())) counts = std::max(counts, elements_of(t).size());
  }
  std::string text = fmt::format("{:{}}  {:12}  {:>{}}  {:>8}  {}\n", "tensor", width, "shape",
                                 "elements", counts, "worst", "verdict");
  for (const TensorCheck& t : tensors) {
    if (!is_row(t, tensors.size())) {
      ++passed;
      continue;
    }
    text += fmt::format("{:{}}  {:12}  {:>{}}  {:>8.1e}  {}{}\n", t.name, width, to_string(t.shape),
                        elements_of(t), counts, t.worst, name_of(t.verdict),
                        t.note.empty() ? "" : ": " + t.note);
  }
  if (passed > 0) text += fmt::format("and {} more, which pass\n", passed);
  return text;
}

std::string what_the_sweep_shows(Trend trend) {
  switch (trend) {
    case Trend::wrong:
      return "flat where steps are good: the gradient is wrong";
    case Trend::kink:
      return "the slopes to the left and to the right differ: a kink";
    case Trend::rounding:
      return "it grows as 1/step: rounding";
  }
  return "";
}

std::string sweep(const Diagnosis& d) {
  std::string text = fmt::format("{:>8}  {:>14}  {:>14}  {:>14}  {:>20}\n", "step", "numeric",
                                 "left", "right", "|analytic - numeric|");
  for (const SweepStep& s : d.sweep)
    text += fmt::format("{:>8.0e}  {:>14.8g}  {:>14.8g}  {:>14.8g}  {:>20.2e}\n", s.step, s.numeric,
                        s.left, s.right, s.difference);
  return text + what_the_sweep_shows(d.trend) + "\n";
}

std::string record(const WrongRecord& r) {
  std::string text = fmt::format("{}: {} of {} on the tape, {} of ({}), result {}\n",
                                 r.input < 0 ? "record" : "first wrong record", r.number, r.of,
                                 r.op, fmt::join(r.inputs, ", "), r.shape);
  if (r.input >= 0 && r.analytic != r.numeric)
    text += fmt::format(
        "  alone, at the values it saw: gradient of {}, element {}: analytic {:.9g}, "
        "numeric {:.9g}\n",
        r.inputs[static_cast<std::size_t>(r.input)], r.element, r.analytic, r.numeric);
  return text;
}

}  // namespace

std::string describe(const GradReport& report) {
  std::string text;
  for (const std::string& problem : report.problems) text += problem + "\n";
  const bool values_fail = std::any_of(report.tensors.begin(), report.tensors.end(),
                                       [](const auto& t) { return t.verdict == Verdict::fail; });
  if (values_fail) {
    const auto worst =
        std::find_if(report.tensors.begin(), report.tensors.end(),
                     [&](const TensorCheck& t) { return report.where.starts_with(t.name + ","); });
    text += fmt::format("{}: analytic {:.9g}, numeric {:.9g}\n", report.where, report.analytic,
                        report.numeric);
    text += fmt::format(
        "error {:.2g} of the largest gradient; {:.0e} passes; rounding hides gradients "
        "below {:.1e}; {}, step {:.0e}\n",
        report.worst, report.tolerance, worst == report.tensors.end() ? 0 : worst->floor,
        report.dtype, report.step);
  }
  const Diagnosis& d = report.diagnosis;
  if (d.fault != Fault::none)
    text += fmt::format("kind: {}{}{}\n", name_of(d.fault), d.reason.empty() ? "" : "; ", d.reason);
  if (d.record.number >= 0) text += record(d.record);
  if (!d.inputs_affected.empty())
    text += fmt::format("wrong gradient of: {}\n", fmt::join(d.inputs_affected, "; "));
  if (!d.outputs_affected.empty())
    text += fmt::format("sent by the result's: {}\n", d.outputs_affected);
  if (!d.sweep.empty()) text += fmt::format("{}, with other steps:\n{}", report.where, sweep(d));
  if (!report.tensors.empty() && (report.tensors.size() > 1 || !values_fail))
    text += table(report.tensors);
  if (values_fail) return text;
  std::vector<std::string> told;  // by the table
  for (const TensorCheck& t : report.tensors)
    if (is_row(t, report.tensors.size())) told.push_back(fmt::format("{}: {}", t.name, t.note));
  for (const std::string& note : report.notes)
    if (std::find(told.begin(), told.end(), note) == told.end()) text += note + "\n";
  return text;
}

}  // namespace headwise
