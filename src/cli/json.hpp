// Numbers as JSON has them.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>

namespace headwise::cli {

/// The number, or null: JSON has neither infinities nor NaN.
inline nlohmann::json number(double x) {
  return std::isfinite(x) ? nlohmann::json(x) : nlohmann::json(nullptr);
}

}  // namespace headwise::cli
