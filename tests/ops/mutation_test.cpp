// Plants mistakes in the backward of every op, in every case of the table, and wants each of them
// noticed, found at its record, and called by its kind.
#include "headwise/ops/op_table.hpp"

#include "support/layer_mistakes.hpp"
#include "support/planted.hpp"
#include "support/threads.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

Site site_of(const OpSpec& spec, const OpCase& c) {
  const std::vector<Tensor<double>> x = random_inputs(c);
  if (c.label != "of a sum, and that") {
    const auto whole = [f = c.f64](const auto& change) { return change(f); };
    return {spec.name, c.label, x, whole, Call(c.f64, x), static_cast<Index>(x.size())};
  }
  // Two ops of one call, and their product: the norm is taken by itself.
  const Op norm = [](const Vars& in) { return layer_norm(in[0], in[1], in[2]); };
  const auto whole = [norm](const auto& change) {
    return [wrong = change(norm)](const Vars& in) {
      const Value sum = add(in[0], in[1]);
      return mul(sum, wrong({sum, in[2], in[3]}));
    };
  };
  const Call call(norm, {add(Value(x[0]), Value(x[1])).value(), x[2], x[3]});
  return {spec.name, c.label, x, whole, call, static_cast<Index>(x.size()) + 1};
}

/// Every case of the table, and two more, in which an operand can be taken transposed.
std::vector<Site> sites() {
  std::vector<OpSpec> table = op_table();
  table.push_back({"matmul", {op_case("square operands", {{3, 3}, {3, 3}}, any, [](auto& x) {
                     return matmul(x[0], x[1]);
                   })}});
  table.push_back({"linear", {op_case("square weight", {{3, 4}, {4, 4}, {4}}, any, [](auto& x) {
                     return linear(x[0], x[1], x[2]);
                   })}});
  std::vector<Site> all;
  for (const OpSpec& spec : table)
    for (const OpCase& c : spec.cases) all.push_back(site_of(spec, c));
  return all;
}

}  // namespace

TEST_CASE("an op in the wrapper that plants mistakes is right when it plants none", "[mutation]") {
  const Threads one(1);
  for (const Site& site : sites()) {
    CAPTURE(site.op, site.label);
    const Op f = with_mistake(site, no_mistake());
    CHECK(gradcheck(f, site.inputs).verdict == Verdict::pass);
    Tape<double> tape;
    Vars leaves;
    for (const Tensor<double>& x : site.inputs) leaves.push_back(tape.leaf(x));
    f(leaves);
    CHECK(tape.op_names().at(static_cast<std::size_t>(site.record)) == site.op);
  }
}

TEST_CASE("every mistake planted in an op is caught, at its record and by its kind", "[mutation]") {
  const std::vector<Site> all = sites();
  std::vector<Planted> planted;
  std::map<std::string, Index> of_op;
  for (const Site& site : all) {
    const std::vector<Planted> here =
        mistakes_at(site, own_mistakes(site.op, site.label, site.call.op));
    CAPTURE(site.op, site.label);
    CHECK(here.size() >= 2);
    of_op[site.op] += static_cast<Index>(here.size());
    planted.insert(planted.end(), here.begin(), here.end());
  }
  for (const OpSpec& spec : op_table()) CHECK(of_op.contains(spec.name));
  require_caught(planted, fmt::format("{} cases of {} ops", all.size(), of_op.size()));
}

TEST_CASE("a contribution lost between two places of one input is caught", "[mutation]") {
  // Recorded with x twice, as a product of x with itself is: the second place replaces the first.
  const Op product = [](const Vars& x) { return matmul(x[0], x[1]); };
  Mistake assigned = no_mistake();
  assigned.assigns = 1;
  const Op f = [square = faulty("matmul", product, assigned)](const Vars& x) {
    return square({x[0], x[0]});
  };
  const GradReport report = gradcheck(f, {random_tensor<double>({3, 3}, 1)});
  CHECK(missed(report, "matmul", 1, {Fault::accumulation}).empty());
}

TEST_CASE("a mistake that is not noticed, not found or not named counts as missed", "[mutation]") {
  const std::vector<Tensor<double>> x = {random_tensor<double>({3, 4}, 1)};
  const Op op = [](const Vars& in) { return exp(in[0]); };
  const auto report = [&](const Mistake& mistake) {
    return gradcheck(faulty("exp", op, mistake), x);
  };
  const Mistake minus = signs(Call(op, x))[0];
  CHECK(missed(report(minus), "exp", 1, {Fault::sign}).empty());
  CHECK(missed(report(no_mistake()), "exp", 1, {Fault::sign}) == "verdict pass");
  CHECK(missed(report(minus), "exp", 2, {Fault::sign}) == "record 1 (exp) instead of 2 (exp)");
  CHECK(missed(report(minus), "log", 1, {Fault::sign}) == "record 1 (exp) instead of 1 (log)");
  CHECK_THAT(missed(report(minus), "exp", 1, {Fault::factor, Fault::row}),
             Catch::Contains("instead of 'factor' or 'one row'"));
}
