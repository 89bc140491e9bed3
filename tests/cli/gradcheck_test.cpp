// headwise gradcheck: what it prints, as text and as JSON, and the page that it writes.
#include <chrono>
#include <cmath>
#include <limits>
#include <set>

#include "cli/gradcheck_json.hpp"
#include "cli/gradcheck_page.hpp"
#include "cli/gradient_map.hpp"
#include "cli/html.hpp"
#include "cli/program.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/numbers.hpp"
#include "support/share.hpp"

using namespace headwise;
using namespace headwise::cli;
using namespace headwise::test;

namespace {

Index count(const std::string& text, const std::string& part) {
  Index n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// A tensor whose gradients are 1 everywhere, but for element `at`.
TensorCheck tensor(const std::string& name, const Shape& shape, Index at, double analytic,
                   double numeric) {
  TensorCheck t;
  t.name = name, t.shape = shape, t.verdict = Verdict::fail, t.elements = shape.size();
  t.at = at, t.analytic = analytic, t.numeric = numeric;
  t.worst = std::fabs(analytic - numeric);
  t.a = t.n = Tensor<double>::full(shape, 1);
  t.a.data()[at] = analytic, t.n.data()[at] = numeric;
  return t;
}

GradReport failed(std::vector<TensorCheck> tensors) {
  GradReport r;
  r.verdict = Verdict::fail, r.tolerance = 1e-7, r.step = 1e-3, r.worst = tensors[0].worst;
  r.where = tensors[0].name + ", element 1";
  for (const TensorCheck& t : tensors) r.elements += t.elements;
  r.tensors = std::move(tensors);
  return r;
}

/// The cells of a map that have that colour.
Index cells(const std::string& map, const std::string& colour) {
  return count(map, "class=\"cell " + colour + "\"");
}

}  // namespace

TEST_CASE("gradcheck's JSON has the contract's keys, in its order", "[cli][gradcheck]") {
  const Result r = headwise_program("gradcheck gelu layer_norm --json");
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  CHECK(r.out.starts_with(
      R"({"event":"check","name":"layer_norm","case":"gain and bias","dtype":"f64",)"
      R"("elements":)"));
  std::vector<nlohmann::json> all = lines(r.out);
  const nlohmann::json done = all.back();
  all.pop_back();
  CHECK(done == nlohmann::json{
                    {"event", "done"}, {"passed", all.size()}, {"failed", 0}, {"inconclusive", 0}});
  std::set<std::string> names;
  for (const nlohmann::json& line : all) {
    names.insert(line.at("name"));
    CHECK(line.at("elements") > 0);
    CHECK(line.at("skipped") == 0);
    CHECK(line.at("worst") <= 1e-7);
    CHECK(line.at("tolerance") == 1e-7);
    CHECK(line.at("verdict") == "pass");
    CHECK(line.at("where").get<std::string>().starts_with("input "));
    CHECK(line.at("analytic").get<double>() == Approx(line.at("numeric").get<double>()));
    CHECK(line.at("problems").empty());
    CHECK_FALSE(line.contains("fault"));
    Index elements = 0;
    for (const nlohmann::json& t : line.at("tensors")) elements += t.at("elements").get<Index>();
    CHECK(elements == line.at("elements"));
  }
  CHECK(names == std::set<std::string>{"gelu", "layer_norm"});
}

TEST_CASE("a failure's JSON says what is wrong, and null for what is not finite",
          "[cli][gradcheck]") {
  GradReport r = failed({tensor("x\xFF", {2, 3}, 1, kNaN, 1)});
  r.analytic = kNaN, r.numeric = 1;
  r.problems = {"not deterministic"};
  r.diagnosis.fault = Fault::reduction;
  r.diagnosis.reason = "a \"reason\"";
  r.diagnosis.trend = Trend::kink;
  r.diagnosis.sweep = {{1e-3, 2, 1, 3, 0.5}, {1e-4, kNaN, 1, 3, kNaN}};
  r.diagnosis.inputs_affected = {"x: row 1 of 2"};
  r.diagnosis.outputs_affected = "everything";
  r.diagnosis.record = {.number = 3, .of = 5, .op = "add", .shape = {2}, .inputs = {"input 0"}};
  const auto line = nlohmann::json::parse(check_line({"op", "case", r}, "f32"));
  CHECK(line.at("verdict") == "fail");
  CHECK(line.at("dtype") == "f32");
  CHECK(line.at("worst").is_null());
  CHECK(line.at("analytic").is_null());
  CHECK(line.at("numeric") == 1);
  CHECK(line.at("problems") == nlohmann::json{"not deterministic"});
  CHECK(line.at("fault") == "missing reduction");
  CHECK(line.at("reason") == "a \"reason\"");
  CHECK(line.at("ratio").is_null());
  CHECK(line.at("record").at("number") == 3);
  CHECK(line.at("record").at("shape") == nlohmann::json{2});
  CHECK(line.at("record").at("inputs") == nlohmann::json{"input 0"});
  CHECK(line.at("tensors").at(0).at("name") == "x\uFFFD");
  CHECK(line.at("trend") == "kink");
  CHECK(line.at("sweep").size() == 2);
  CHECK(line.at("sweep").at(0) ==
        nlohmann::json{
            {"step", 1e-3}, {"numeric", 2.0}, {"left", 1.0}, {"right", 3.0}, {"difference", 0.5}});
  CHECK(line.at("sweep").at(1).at("numeric").is_null());
  CHECK(line.at("inputs_affected") == nlohmann::json{"x: row 1 of 2"});
  CHECK(line.at("outputs_affected") == "everything");

  r.diagnosis.record.number = -1;
  r.diagnosis.ratio = 2;
  r.diagnosis.sweep.clear();
  const auto other = nlohmann::json::parse(check_line({"op", "case", r}, "f64"));
  CHECK(other.at("record").is_null());
  CHECK(other.at("ratio") == 2);
  CHECK(other.at("trend").is_null());
}

TEST_CASE("gradcheck tells the same to the byte on any number of threads", "[cli][threads]") {
  const std::string arguments = "gradcheck attention linear Block --json --threads ";
  const Result one = headwise_program(arguments + "1");
  CHECK(one.code == 0);
  CHECK(one.out == headwise_program(arguments + "2").out);
  CHECK(one.out != headwise_program(arguments + "2 --seed 2").out);
}

TEST_CASE("gradcheck with names has a line a case, and totals", "[cli][gradcheck]") {
  const Result r = headwise_program("gradcheck gelu Linear");
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  CHECK(r.out.starts_with("name, case "));
  CHECK(mentions(r.out, {"\ngelu\n  exact ", "\nLinear\n", " pass ", "input 0, element "}));
  CHECK_THAT(r.out,
             Catch::Contains(" passed, 0 failed, 0 inconclusive; tolerance 1e-07, in double\n"));
}

TEST_CASE("gradcheck in float says that its bounds are looser", "[cli][gradcheck]") {
  const Result r = headwise_program("gradcheck square --dtype f32");
  CHECK(r.code == 0);
  CHECK(mentions(r.out, {"1 passed", "tolerance 5e-03, in float\n", "only coarse mistakes show"}));
  const Result as_json = headwise_program("gradcheck square --dtype f32 --json");
  CHECK(lines(as_json.out).at(0).at("dtype") == "f32");
  CHECK(lines(as_json.out).at(0).at("tolerance") == kGradToleranceFloat);
}

TEST_CASE("everything passes in float", "[cli][gradcheck]") {
  const std::string names = kEvery == 1 ? "" : "gelu attention MultiHeadAttention ";
  const Result r = headwise_program("gradcheck --dtype f32 --json " + names);
  CHECK(r.code == 0);
  CHECK(lines(r.out).back().at("inconclusive") == 0);
}

TEST_CASE("gradcheck says what its verdicts do not rest on", "[cli][gradcheck]") {
  const Result all = headwise_program("gradcheck gelu"),
               fast = headwise_program("gradcheck gelu --fast");
  CHECK_FALSE(mentions(all.out, {"were looked at"}));
  CHECK_FALSE(mentions(all.out, {"unseen"}));
  CHECK(
      mentions(fast.out, {"an error of 1 % of its gradient goes unseen with probability 8.0e-05"}));
}

TEST_CASE("gradcheck refuses what makes no sense, before any work", "[cli][errors]") {
  const Folder folder;
  const auto refused = [](const std::string& arguments, const std::string& message) {
    const Result r = headwise_program("gradcheck " + arguments);
    CHECK(r.code == 2);
    CHECK(r.out.empty());
    CHECK_THAT(r.err, Catch::Contains(message));
  };
  refused("gelu foo", "gradcheck: no op or layer is called 'foo'; known: abs, ");
  refused("Foo", ", sub, sum, tanh, where, Block, Decoder, Embedding, ");
  refused("--seconds -1", "--seconds: must be finite and >= 0, got -1");
  refused("--seconds nan", "--seconds: must be finite and >= 0, got nan");
  refused("--run x gelu", "--run: checks a whole run, without names, got 'gelu'");
  refused("--run x --dtype f32", "--dtype: a run is checked in double");
  refused("--html " + (folder / "no/page.html"), "--html: there is no folder " + (folder / "no"));
  refused("--html " + (folder / ""), "--html: " + (folder / "") + " is a folder");
}

TEST_CASE("gradcheck of everything: a row a name, a page with a row a check", "[cli][gradcheck]") {
  const Folder folder;
  const std::string page = folder / "page.html";
  const auto start = std::chrono::steady_clock::now();
  const Result r = headwise_program("gradcheck --html " + page);
  CHECK(r.code == 0);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(120));  // slowest builds
  const Result as_json = headwise_program("gradcheck --fast --json");
  std::set<std::string> names;
  for (const nlohmann::json& line : lines(as_json.out))
    if (line.at("event") == "check") names.insert(line.at("name"));
  // Broadcasting's reductions and every layer that is trained (cases 24, 25).
  for (const char* name : {"add", "linear", "Linear", "Embedding", "LayerNorm",
                           "MultiHeadAttention", "Mlp", "Block", "Decoder"})
    CHECK(names.contains(name));
  // The head, the totals, and that of a large vocabulary some elements were taken.
  CHECK(count(r.out, "\n") == static_cast<Index>(names.size()) + 3);
  const std::string html = contents(page);
  CHECK(count(html, "<tr><td>") == count(as_json.out, "\"event\":\"check\""));
  CHECK(count(html, "<span class=\"pass\">pass</span>") == count(html, "<tr><td>"));
  CHECK(html.starts_with("<!DOCTYPE html>"));
  CHECK(mentions(html, {"Every op, every layer and a whole small decoder.", "charset=\"utf-8\""}));
  CHECK_FALSE(mentions(html, {"http"}));
  CHECK_FALSE(std::filesystem::exists(page + ".tmp"));
}

TEST_CASE("gradcheck --run has a row a parameter and keeps to its seconds", "[cli][gradcheck]") {
  const Folder folder;
  const std::string run = folder / "run", page = folder / "page.html";
  // Too large for every element to be looked at in a second, on any machine.
  REQUIRE(headwise_program("train --steps 40 --lr 0.05 --layers 1 --heads 2 --width 64 --batch 2 "
                           "--context 16 --warmup 2 --eval-batches 2 --threads 1 --out " +
                           run)
              .code == 0);
  const Result r = headwise_program("gradcheck --seconds 1 --run " + run + " --html " + page);
  CHECK(r.code == 0);
  CHECK(r.out.starts_with("parameter "));
  CHECK(mentions(r.out, {"\ntok.weight ", "\nblocks.0.attn.w_q.weight ",
                         "\n1 passed, 0 failed, 0 inconclusive; tolerance 1e-07, in double\n",
                         " elements were looked at.\n"}));
  CHECK_THAT(contents(page), Catch::Contains("The model of the run " + run));
  CHECK(headwise_program("gradcheck --run " + (folder / "none")).code == 1);
}

TEST_CASE("text is escaped for HTML", "[cli][html]") {
  CHECK(escaped("a<b> & \"c\" 'd'\n") == "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;\n");
  CHECK(escaped(std::string("\x1b[1m\0é", 7)) == "\uFFFD[1m\uFFFDé");
}

TEST_CASE("the page of a failure: escaped names, the sweep, tensors of any rank",
          "[cli][gradcheck]") {
  GradReport bad =
      failed({tensor("w<&\"", {2, 3}, 1, 2, 1), tensor("scalar", {}, 0, 3, 1),
              tensor("vector", {4}, 1, kNaN, 1), tensor("heads", {2, 2, 3, 4}, 1, 2, 1)});
  bad.diagnosis.sweep = {{1e-3, 1, 1, 1, 1}, {1e-4, 1, 1, 1, 0}, {1e-5, kNaN, 1, 1, kNaN}};
  GradReport good;
  good.verdict = Verdict::pass;
  const std::string page =
      gradcheck_page({{"gelu", "<x>", good}, {"a&b", "case", bad}}, {"facts <1>"});
  CHECK(mentions(page, {"<strong>1 passed, 1 failed, 0 inconclusive</strong>", "facts &lt;1&gt;",
                        "<td>&lt;x&gt;</td>", "<a href=\"#check-1\">a&amp;b: case</a>",
                        "<section id=\"check-1\">", "w&lt;&amp;&quot;: (2,3), 6 of 6 elements"}));
  CHECK_FALSE(mentions(page, {"<section id=\"check-0\">"}));
  CHECK_FALSE(mentions(page, {"w<&"}));
  CHECK_FALSE(mentions(page, {"http"}));
  CHECK(count(page, "<tr><td>") == 2);
  CHECK(count(page, "<circle") == 2);  // the step whose difference is NaN has no place
  CHECK(count(page, "class=\"none\"") == 1);
  CHECK(count(page, "aria-label=\"error of each element") == 4);
  CHECK(count(page, "<svg") == count(page, "</svg>"));
}

TEST_CASE("a map's colours, its outline and what it tells to a pointer", "[cli][gradcheck]") {
  TensorCheck t = tensor("x", {2, 5}, 6, 3, 1);
  t.worst = 2.0 / 3;  // relative to 3
  double *a = t.a.data(), *n = t.n.data();
  a[0] = n[0] = kNaN;     // not compared
  a[1] = 1 + 3 * 0.9e-7;  // just passes
  a[2] = 1 + 3 * 1.1e-7;  // just does not
  a[3] = -std::numeric_limits<double>::infinity();
  a[4] = 20;  // more than the worst: near a kink
  const std::string map = gradient_map(t, 1e-7);
  CHECK(cells(map, "skip") == 2);
  CHECK(cells(map, "b3") == 1);
  CHECK(cells(map, "r0") == 1);
  CHECK(cells(map, "bad") == 1);
  CHECK(cells(map, "r6") == 1);  // 2/3
  CHECK(cells(map, "b0") == 4);
  CHECK(mentions(map, {"<title>element 6 [1,1]: analytic 3, numeric 1, error 0.67</title>",
                       "<title>not compared</title>", "analytic -inf, numeric 1, error nan"}));
  CHECK(count(map, "class=\"worst\"") == 1);
}

TEST_CASE("a large tensor's map shows the worst of several elements", "[cli][gradcheck]") {
  const std::string map = gradient_map(tensor("x", {130, 64}, 64 + 63, 2, 1), 1e-7);
  CHECK(count(map, "<title>") == 44 * 64);  // three rows in one
  CHECK(mentions(map,
                 {"a cell is the largest error of up to 3 x 1 elements",
                  "<title>largest of 3: element 127 [1,63]: analytic 2, numeric 1, error 1</title>",
                  "<title>largest of 3: element 0 [0,0]: analytic 1, numeric 1, error 0<"}));
  CHECK(cells(map, "r6") == 1);
  CHECK(cells(map, "b0") == 44 * 64 - 1);

  const std::string blocks = gradient_map(tensor("x", {2, 3, 4, 5}, 119, 2, 1), 1e-7);
  CHECK(count(blocks, "<title>") == 120);
  CHECK(mentions(blocks, {">[0,0]</text>", ">[1,2]</text>", "rows are axis 2, columns axis 3"}));
  const std::string many = gradient_map(tensor("x", {70, 2, 2}, 1, 2, 1), 1e-7);
  CHECK(count(many, "<title>") == 47 * 2);
  CHECK(mentions(many, {"rows are the axes 0 to 1 together"}));
}

TEST_CASE("NaN on both sides of the worst element is drawn as that", "[cli][gradcheck]") {
  TensorCheck t = tensor("x", {}, 0, kNaN, kNaN);
  CHECK(cells(gradient_map(t, 1e-7), "bad") == 1);
  t.worst = 0;
  CHECK(cells(gradient_map(t, 1e-7), "skip") == 1);
  TensorCheck none;
  none.name = "none", none.shape = {0, 2};
  CHECK_THAT(gradient_map(none, 1e-7), Catch::Contains("none: (0,2) was not compared"));
}
