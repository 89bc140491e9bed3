// Shows how far work is: a bar on a terminal, a line every ten seconds elsewhere. On standard
// error.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "headwise/core/shape.hpp"

namespace headwise::cli {

class Progress {
 public:
  /// Of `total` steps, `done` of which lie behind us.
  Progress(Index total, Index done);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Tells of a step; most calls do nothing.
  void show(Index step, double loss, double tokens_per_second);
  /// Tells what comes after so many steps: at once on a terminal.
  void show(Index step, std::string_view next);
  /// Takes the bar away, so that a line can be printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  void draw(Index step, const std::string& text);

  bool terminal_;
  bool shown_ = false;
  Index total_, first_;
  Clock::time_point start_, last_;
};

/// "1:02:03", "2:03" or "0:03".
std::string clock_text(double seconds);

}  // namespace headwise::cli
