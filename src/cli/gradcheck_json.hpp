// What `headwise gradcheck --json` prints: a line a check, and one at the end.
#pragma once

#include <string>
#include <string_view>

#include "cli/gradcheck_page.hpp"

namespace headwise::cli {

/// A check as JSON, "dtype" being f64 or f32. Of a failure with what kind of mistake it is, the
/// record it comes from (null: none is wrong alone), the difference with other steps and how it
/// changes (null: not looked into), and what is affected. What is not finite is null.
std::string check_line(const Checked& c, std::string_view dtype);

std::string done_line(const Tally& tally);

}  // namespace headwise::cli
