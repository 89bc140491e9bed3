#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace headwise::cli {

Progress::Progress(Index total, Index done)
    : terminal_(::isatty(STDERR_FILENO) != 0), total_(total), first_(done), start_(Clock::now()) {}

void Progress::show(Index step, double loss, double tokens_per_second) {
  const Clock::time_point now = Clock::now();
  if (!terminal_ || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  shown_ = true;
  constexpr int kWidth = 24;
  const double part = static_cast<double>(step) / static_cast<double>(total_);
  const int full = static_cast<int>(part * kWidth);
  std::string bar;
  for (int i = 0; i < kWidth; ++i) bar += i < full ? "█" : "░";
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double left = seconds / static_cast<double>(std::max<Index>(1, step - first_)) *
                      static_cast<double>(total_ - step);
  fmt::print(stderr, "\r{} {:3.0f}%  step {}/{}  loss {:.3f}  {:.0f} tokens/s  {} left \033[K", bar,
             100 * part, step, total_, loss, tokens_per_second, clock_text(left));
  std::fflush(stderr);
}

void Progress::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

std::string clock_text(double seconds) {
  const auto s = static_cast<Index>(seconds + 0.5);
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace headwise::cli
