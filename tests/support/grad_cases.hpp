// What a table of gradient checks has to have, and that each of them passes.
#pragma once

#include <string>
#include <vector>

#include "headwise/autograd/gradcheck.hpp"
#include "support/catch.hpp"

namespace headwise::test {

struct ExpectedCase {
  std::string name, label;
  Index elements;  ///< of inputs and parameters that are compared, counted by hand
};

/// To be called in a test case; a section a check.
inline void require_cases(const std::vector<GradCase>& cases,
                          const std::vector<ExpectedCase>& expected) {
  REQUIRE(cases.size() == expected.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    DYNAMIC_SECTION(cases[i].name << ": " << cases[i].label) {
      CHECK(cases[i].name == expected[i].name);
      CHECK(cases[i].label == expected[i].label);
      const GradReport report = cases[i].check({});
      INFO(describe(report));
      CHECK(report.verdict == Verdict::pass);
      CHECK(report.worst <= kGradTolerance);
      CHECK(report.elements == expected[i].elements);
      CHECK(report.skipped == 0);
      for (const TensorCheck& t : report.tensors) {
        CAPTURE(t.name);
        CHECK(t.verdict == Verdict::pass);
      }
    }
  }
}

}  // namespace headwise::test
