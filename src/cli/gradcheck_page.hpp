// The report of `headwise gradcheck --html`: one page, which needs no network.
#pragma once

#include <string>
#include <vector>

#include "headwise/autograd/gradcheck.hpp"

namespace headwise::cli {

/// A check that was made: a line of the table.
struct Checked {
  std::string name, label;  ///< as of GradCase
  GradReport report;
};

/// How many checks ended how.
struct Tally {
  Index passed = 0, failed = 0, inconclusive = 0;

  void add(Verdict verdict) {
    ++(verdict == Verdict::pass ? passed : verdict == Verdict::fail ? failed : inconclusive);
  }
  /// "3 passed, 0 failed, 1 inconclusive".
  [[nodiscard]] std::string text() const;
};

/// The page as HTML: the table, and of each check that did not pass its diagnosis, the sweep over
/// steps, and the error drawn over the tensor. `facts` are lines for its head, plain text.
std::string gradcheck_page(const std::vector<Checked>& checks,
                           const std::vector<std::string>& facts);

}  // namespace headwise::cli
