#include "cli/gradcheck_json.hpp"

#include "cli/json.hpp"

#include <nlohmann/json.hpp>

namespace headwise::cli {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no NaN and no infinity.

/// On one line, whatever bytes a name holds.
std::string text_of(const Json& line) {
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json tensors_of(const GradReport& r) {
  Json all = Json::array();
  for (const TensorCheck& t : r.tensors)
    all.push_back({{"name", t.name},
                   {"shape", t.shape.sizes()},
                   {"elements", t.elements},
                   {"skipped", t.skipped},
                   {"worst", number(t.worst)},
                   {"element", t.at},
                   {"analytic", number(t.analytic)},
                   {"numeric", number(t.numeric)},
                   {"verdict", name_of(t.verdict)},
                   {"note", t.note},
                   {"step", number(t.step)}});
  return all;
}

Json record_of(const WrongRecord& record) {
  if (record.number < 0) return nullptr;
  return {{"number", record.number},
          {"of", record.of},
          {"op", record.op},
          {"shape", record.shape.sizes()},
          {"inputs", record.inputs},
          {"input", record.input},
          {"element", record.element},
          {"analytic", number(record.analytic)},
          {"numeric", number(record.numeric)}};
}

Json sweep_of(const std::vector<SweepStep>& sweep) {
  Json all = Json::array();
  for (const SweepStep& s : sweep)
    all.push_back({{"step", number(s.step)},
                   {"numeric", number(s.numeric)},
                   {"left", number(s.left)},
                   {"right", number(s.right)},
                   {"difference", number(s.difference)}});
  return all;
}

}  // namespace

std::string check_line(const Checked& c, std::string_view dtype) {
  const GradReport& r = c.report;
  Json line{{"event", "check"},
            {"name", c.name},
            {"case", c.label},
            {"dtype", dtype},
            {"elements", r.elements},
            {"skipped", r.skipped},
            {"worst", number(r.worst)},
            {"where", r.where},
            {"analytic", number(r.analytic)},
            {"numeric", number(r.numeric)},
            {"verdict", name_of(r.verdict)},
            {"tolerance", number(r.tolerance)},
            {"step", number(r.step)},
            {"problems", r.problems},
            {"notes", r.notes},
            {"tensors", tensors_of(r)}};
  if (r.verdict == Verdict::fail) {
    const Diagnosis& d = r.diagnosis;
    line["fault"] = name_of(d.fault);
    line["reason"] = d.reason;
    line["ratio"] = d.ratio == 0 ? Json(nullptr) : Json(number(d.ratio));
    line["record"] = record_of(d.record);
    line["trend"] = d.sweep.empty() ? Json(nullptr) : Json(name_of(d.trend));
    line["sweep"] = sweep_of(d.sweep);
    line["inputs_affected"] = d.inputs_affected;
    line["outputs_affected"] = d.outputs_affected;
  }
  return text_of(line);
}

std::string done_line(const Tally& tally) {
  return text_of({{"event", "done"},
                  {"passed", tally.passed},
                  {"failed", tally.failed},
                  {"inconclusive", tally.inconclusive}});
}

}  // namespace headwise::cli
