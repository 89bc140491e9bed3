#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "cli/message.hpp"

namespace headwise::cli {
namespace {

/// Whether standard error is a terminal that knows how to erase a line.
bool can_redraw() {
  const char* const term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) != 0 && term != nullptr && *term != '\0' &&
         std::string_view(term) != "dumb";
}

}  // namespace

Progress::Progress(Index total, Index done)
    : terminal_(can_redraw()), total_(total), first_(done), start_(Clock::now()), last_(start_) {}

void Progress::show(Index step, double loss, double tokens_per_second) {
  const Clock::time_point now = Clock::now();
  const auto pause = terminal_ ? std::chrono::milliseconds(100) : std::chrono::seconds(10);
  if (now - last_ < pause) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double left = seconds / static_cast<double>(std::max<Index>(1, step - first_)) *
                      static_cast<double>(total_ - step);
  draw(step, fmt::format("step {}/{}  loss {:.3f}  {:.0f} tokens/s  {} left", step, total_, loss,
                         tokens_per_second, clock_text(left)));
}

void Progress::show(Index step, std::string_view next) {
  const Clock::time_point now = Clock::now();
  if (!terminal_ && now - last_ < std::chrono::seconds(10)) return;
  last_ = now;
  constexpr int kRoom = 48;  // beside the bar, of 80 columns
  draw(step, fmt::format("{}/{}  {:.{}}", step, total_, next, kRoom));
}

void Progress::draw(Index step, const std::string& text) {
  if (!terminal_) {
    print_message("{}\n", text);
    return;
  }
  shown_ = true;
  constexpr Index kWidth = 16;  // short enough for 80 columns
  std::string bar;
  for (Index i = 0; i < kWidth; ++i) bar += i < step * kWidth / total_ ? "█" : "░";
  print_message("\r{} {} \033[K", bar, text);
}

void Progress::clear() {
  if (!shown_) return;
  print_message("\r\033[K");
  shown_ = false;
}

std::string clock_text(double seconds) {
  const auto s = static_cast<Index>(seconds + 0.5);
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace headwise::cli
