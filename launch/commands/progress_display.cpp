#include "launch/commands/progress_display.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"

namespace kernelmill::commands {

namespace {

constexpr double terminal_interval = 0.1; // seconds; more often only flickers
constexpr double plain_interval = 5;

size_t terminal_width() {
  winsize size{};
  return ::ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

} // namespace

/// The share of the work that is done: by episodes, or by builds while episodes go on side by side
/// and none has ended yet.
double progress_display::share(const progress& x) const {
  double total = std::max(1u, x.episodes_total);
  double by_builds = max_turns_ > 0 ? static_cast<double>(x.builds) / (total * max_turns_) : 0;
  return std::min(1.0, std::max(x.episodes_done / total, by_builds));
}

std::string progress_display::text(const progress& x) const {
  auto seconds = std::max(x.seconds, 1e-3);
  auto result = fmt::format("{}/{} episodes", x.episodes_done, x.episodes_total);
  auto gained = share(x) - share(first_);
  // Less than a twentieth says nothing yet.
  if (gained > 0.05 && share(x) < 1)
    result +=
        ", about " + cli::format_seconds(std::ceil(seconds / gained * (1 - share(x)))) + " left";
  result += fmt::format("  accepted {}  rejected {}", x.accepted, x.rejected);
  if (x.infrastructure > 0) result += fmt::format("  infrastructure {}", x.infrastructure);
  return result + fmt::format("  turns {}  builds {:.1f}/s  evaluations {:.1f}/s", x.turns,
                              static_cast<double>(x.builds) / seconds,
                              static_cast<double>(x.evaluations) / seconds);
}

void progress_display::update(const progress& x) {
  std::lock_guard lock{mutex_};
  if (!begun_) {
    begun_ = true;
    first_ = x;
    if (!terminal_) last_shown_ = x.seconds; // the first plain line after the first interval
  }
  bool last = x.episodes_total > 0 && x.episodes_done == x.episodes_total;
  if (x.seconds - last_shown_ < (terminal_ ? terminal_interval : plain_interval) && !last) return;
  last_shown_ = x.seconds;
  auto line_text = text(x);
  if (!terminal_) {
    cli::talk(line_text);
    return;
  }
  auto line = "\r\x1b[K" + line_text.substr(0, terminal_width() - 1);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
  line_open_ = true;
}

void progress_display::say(std::string_view line) {
  std::lock_guard lock{mutex_};
  if (line_open_) std::fputs("\r\x1b[K", stderr);
  line_open_ = false;
  cli::talk(line);
}

void progress_display::finish() {
  std::lock_guard lock{mutex_};
  if (line_open_) std::fputc('\n', stderr);
  line_open_ = false;
}

} // namespace kernelmill::commands
