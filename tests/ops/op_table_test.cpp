// What holds for every op of ops.def, by its own cases.
#include "headwise/ops/op_table.hpp"

#include <set>

#include "headwise/ops/ops.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

TEST_CASE("every op's gradient matches finite differences", "[ops][gradcheck]") {
  const Threads one(1);  // thousands of tiny regions
  for (const OpSpec& spec : op_table())
    for (const OpCase& c : spec.cases) {
      DYNAMIC_SECTION(spec.name << ": " << c.label) {
        const GradReport report = gradcheck(c.f64, random_inputs(c));
        INFO(report.where << ": analytic " << report.analytic << ", numeric " << report.numeric);
        CHECK(report.worst <= kGradTolerance);
        CHECK(report.verdict == Verdict::pass);
        Index elements = 0;
        for (const Shape& s : c.shapes) elements += s.size();
        CHECK(report.elements == elements);
      }
    }
}

TEST_CASE("every op gives the same in float as in double", "[ops]") {
  for (const OpSpec& spec : op_table())
    for (const OpCase& c : spec.cases) {
      DYNAMIC_SECTION(spec.name << ": " << c.label) {
        const std::vector<Tensor<float>> inputs = all_as<float>(random_inputs(c));
        std::vector<Tensor<double>>
            same;  // to the digit: what rounding the inputs costs is no fault
        for (const Tensor<float>& x : inputs) same.push_back(as<double>(x));
        const Pass<float> single = pass(c.f32, inputs);
        const Pass<double> precise =
            pass(c.f64, same, as<double>(as<float>(projection(single.y.shape()))));
        CHECK(relative_gap(single.y, precise.y) <= 1e-5);
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          INFO("input " << i);
          CHECK(relative_gap(single.d[i], precise.d[i]) <= 1e-5);
        }
      }
    }
}

TEST_CASE("every op sends a gradient of its own shape to every input", "[ops]") {
  for (const OpSpec& spec : op_table())
    for (const OpCase& c : spec.cases) {
      DYNAMIC_SECTION(spec.name << ": " << c.label) {
        const std::vector<Tensor<float>> inputs = all_as<float>(random_inputs(c));
        const Pass<float> found = pass(c.f32, inputs);
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          INFO("input " << i);
          CHECK(found.d[i].shape() == inputs[i].shape());
          const auto d = found.d[i].values();
          CHECK(std::any_of(d.begin(), d.end(), [](float x) { return x != 0; }));
          CHECK(std::all_of(d.begin(), d.end(), [](float x) { return std::isfinite(x); }));
        }
      }
    }
}

TEST_CASE("every op adds to a gradient that is there already", "[ops]") {
  // Twice the same record: each gradient must come out twice as large, whoever came first.
  for (const OpSpec& spec : op_table())
    for (const OpCase& c : spec.cases) {
      DYNAMIC_SECTION(spec.name << ": " << c.label) {
        const std::vector<Tensor<double>> inputs = random_inputs(c);
        const Pass<double> once = pass(c.f64, inputs);
        const auto twice = [&](const std::vector<Var<double>>& x) {
          const Var<double> first = c.f64(x);
          return first + c.f64(x);
        };
        const Pass<double> both = pass<double>(twice, inputs);
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          INFO("input " << i);
          Tensor<double> doubled = once.d[i];
          for (double *d = doubled.data(), *end = d + doubled.size(); d != end; ++d) *d *= 2;
          CHECK(relative_gap(both.d[i], doubled) < 1e-14);
        }
      }
    }
}

TEST_CASE("an input nobody tracks changes no gradient of the others", "[ops]") {
  for (const OpSpec& spec : op_table())
    for (const OpCase& c : spec.cases) {
      DYNAMIC_SECTION(spec.name << ": " << c.label) {
        const std::vector<Tensor<double>> inputs = random_inputs(c);
        const Pass<double> all = pass(c.f64, inputs);
        for (std::size_t only = 0; only < inputs.size(); ++only) {
          INFO("input " << only);
          const auto f = [&](const std::vector<Var<double>>& x) {
            std::vector<Var<double>> mixed(inputs.begin(), inputs.end());
            mixed[only] = x[0];
            return c.f64(mixed);
          };
          const Pass<double> one = pass<double>(f, {inputs[only]});
          CHECK(same_bits(one.y, all.y));
          CHECK(relative_gap(one.d[0], all.d[only]) < 1e-14);
        }
        CHECK_FALSE(c.f64({inputs.begin(), inputs.end()}).tracked());
      }
    }
}

TEST_CASE("the table has every op of ops.def, each with a case of its own name", "[ops]") {
  const std::vector<std::string> listed = {
#define HEADWISE_OP(name) #name,
#include "headwise/ops/ops.def"
#undef HEADWISE_OP
  };
  std::vector<std::string> found;
  for (const OpSpec& spec : op_table()) {
    found.push_back(spec.name);
    CAPTURE(spec.name);
    CHECK_FALSE(spec.cases.empty());
    std::set<std::string> labels;
    for (const OpCase& c : spec.cases) labels.insert(c.label);
    CHECK(labels.size() == spec.cases.size());
  }
  CHECK(found == listed);
}

TEST_CASE("every op is recorded under its name in ops.def", "[ops]") {
  for (const OpSpec& spec : op_table())
    for (const OpCase& c : spec.cases) {
      CAPTURE(spec.name, c.label);
      Tape<double> tape;
      std::vector<Var<double>> leaves;
      for (const Tensor<double>& x : random_inputs(c)) leaves.push_back(tape.leaf(x));
      c.f64(leaves);
      std::vector<std::string> expected(leaves.size(), "leaf");
      expected.push_back(spec.name);
      if (c.label == "of a sum, and that") {  // add_layer_norm is two ops, both in its result
        expected.insert(expected.end() - 1, "add");
        expected.emplace_back("mul");
      }
      CHECK(tape.op_names() == expected);
    }
}

TEST_CASE("a case's inputs are always the same and follow its domain", "[ops]") {
  const OpCase c = op_case(
      "", {{2, 3}, {4}},
      [](Rng& rng, std::span<double> x) {
        for (double& v : x) v = 2 + rng.uniform();
      },
      [](auto& x) { return x[0]; });
  const std::vector<Tensor<double>> one = random_inputs(c), two = random_inputs(c);
  REQUIRE(one.size() == 2);
  CHECK(one[0].shape() == Shape{2, 3});
  CHECK(one[1].shape() == Shape{4});
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(same_bits(one[i], two[i]));
    for (const double x : one[i].values()) CHECK((x > 2 && x < 3));
  }
  CHECK(one[0].data()[0] != one[1].data()[0]);
}
