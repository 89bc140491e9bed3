#include "cli/study_table.hpp"

#include <fmt/format.h>

namespace headwise::cli {
namespace {

std::string p_text(double p) { return p < 1e-99 ? "<1e-99" : fmt::format("{:.0e}", p); }

}  // namespace

void print_heads(const std::vector<study::HeadStudy>& heads) {
  fmt::print("{:6}{:24}{:>7}{:>9}{:>9}\n", "head", "role", "score", "chance", "p");
  for (const study::HeadStudy& head : heads) {
    fmt::print("{:6}", name_of(head.id));
    if (head.role) {
      const study::Measure& m = *head.score(*head.role);
      fmt::print("{:24}{:7.3f}{:9.3f}{:>9}\n", head.label, m.value,
                 study::explained(head, *head.role), p_text(head.corrected_p));
    } else {
      fmt::print("{:24}\n", "-");
    }
  }
}

}  // namespace headwise::cli
