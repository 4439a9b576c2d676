#include "launch/commands/run/progress_display.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"

namespace kernelmill::commands {

namespace {

constexpr double terminal_interval = 0.1; // seconds; more often only flickers
constexpr double plain_interval = 5;
constexpr size_t usual_width = 80;
constexpr size_t longest_error = 160;

std::string waiting_text(const progress& x) {
  std::string result;
  auto add = [&](uint64_t count, const char* what) {
    if (count > 0) result += fmt::format("{}{} {}", result.empty() ? "" : ", ", count, what);
  };
  add(x.at_policy, "for the policy");
  add(x.at_build, "for a build");
  add(x.at_slot, "for a slot");
  return result.empty() ? result : "waiting: " + result;
}

} // namespace

// An episode may end before its last turn. Those that have ended say how many turns one has; those
// that go on may still have all of theirs, or short episodes, which end first, would speak for all.
double progress_display::turns_to_come(const progress& x) const {
  double ended = x.episodes_done, live = x.episodes_live;
  double open = static_cast<double>(x.episodes_total) - ended;
  double each = ended + live > 0
                    ? (static_cast<double>(x.turns_ended) + live * max_turns_) / (ended + live)
                    : max_turns_;
  auto begun = static_cast<double>(x.turns - x.turns_ended);
  return std::max(open > 0 ? 1.0 : 0.0, open * each - begun);
}

// By the pace of the latter half: first turns are quicker, when many do not compile.
std::string progress_display::time_left(const progress& x) const {
  if (pace_.empty()) return {};
  auto seconds = x.seconds - pace_.front().first;
  auto turns = static_cast<double>(x.turns_fresh - pace_.front().second);
  auto rest = turns_to_come(x);
  // Less than a twentieth says nothing yet.
  if (seconds <= 0 || rest <= 0 || static_cast<double>(x.turns_fresh) < 0.05 * rest || turns < 1)
    return {};
  return "about " + cli::format_seconds(std::ceil(rest * seconds / turns)) + " left";
}

std::vector<std::string> progress_display::parts(const progress& x) const {
  std::vector<std::string> result;
  if (x.paused) result.emplace_back("paused: no new episodes start");
  auto planned = std::llround(static_cast<double>(x.turns) + turns_to_come(x));
  result.push_back(fmt::format("{}/{} turns", x.turns, planned));
  result.push_back(fmt::format("{}/{} episodes", x.episodes_done, x.episodes_total));
  if (auto left = time_left(x); !left.empty() && !x.paused) result.push_back(left);
  if (auto waiting = waiting_text(x); !waiting.empty()) result.push_back(waiting);
  if (x.in_slots > 0) result.push_back(fmt::format("{} in slots", x.in_slots));
  result.push_back(fmt::format("{} accepted, {} rejected", x.accepted, x.rejected));
  if (x.infrastructure > 0) result.push_back(fmt::format("{} infrastructure", x.infrastructure));
  if (x.tried_again > 0)
    result.insert(result.begin() + (x.paused ? 3 : 2),
                  fmt::format("policy: {} tried again, attempt {}: {}", x.tried_again, x.attempts,
                              cli::shorten(cli::clean(x.last_error), longest_error)));
  return result;
}

void progress_display::update(const progress& x) {
  std::lock_guard lock{mutex_};
  if (!begun_) {
    begun_ = true;
    if (!terminal_) last_shown_ = x.seconds; // the first plain line after the first interval
  }
  pace_.emplace_back(x.seconds, x.turns_fresh);
  while (pace_.size() > 1 && pace_[1].first < x.seconds / 2) pace_.pop_front();
  bool last = x.episodes_total > 0 && x.episodes_done == x.episodes_total;
  if (x.seconds - last_shown_ < (terminal_ ? terminal_interval : plain_interval) && !last) return;
  last_shown_ = x.seconds;
  if (!terminal_) {
    auto line = fmt::format("{}", fmt::join(parts(x), "; "));
    // The run has steps left behind its last episode, and is asked meanwhile.
    if (!last || line != shown_) cli::talk(line);
    shown_ = std::move(line);
    return;
  }
  auto width = cli::terminal_width(2);
  if (width == 0) width = usual_width;
  std::string line;
  for (const auto& part : parts(x)) {
    auto longer = line + (line.empty() ? "" : "; ") + part;
    if (cli::columns_of(longer) < width) line = std::move(longer);
  }
  if (line_open_ && line == shown_) return;
  shown_ = line;
  line = "\r\x1b[K" + line;
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
