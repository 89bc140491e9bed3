// What a function under check threw, in words.
#pragma once

#include <exception>
#include <string>

namespace headwise {

/// To be called in a catch block. A function under check may throw what it likes: whatever it is
/// belongs into the report.
inline std::string thrown() {
  try {
    throw;
  } catch (const std::exception& e) {
    const std::string text = e.what();
    return text.empty() ? "an exception without a text" : text;
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

}  // namespace headwise
