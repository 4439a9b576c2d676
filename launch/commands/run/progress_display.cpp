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

/// "3/16 episodes ended: 2 accepted, 1 rejected".
std::string ended_text(const progress& x) {
  auto result = fmt::format("{}/{} episodes ended: {} accepted, {} rejected", x.episodes_done,
                            x.episodes_total, x.accepted, x.rejected);
  return x.infrastructure > 0 ? result + fmt::format(", {} infrastructure", x.infrastructure)
                              : result;
}

} // namespace

void progress_display::note_pace(const progress& x) {
  // Until the first turn is committed, nothing tells the pace.
  auto seconds = last_.turns_fresh > 0 ? std::max(0.0, x.seconds - last_.seconds) : 0;
  auto live = static_cast<double>(last_.episodes_live);
  pace_.seconds += seconds;
  pace_.live_seconds += live * seconds;
  pace_.wait_seconds += std::min(static_cast<double>(last_.waiting), live) * seconds;
  if (last_.turns_fresh > 0)
    pace_.seen_turns += static_cast<double>(x.turns_fresh - last_.turns_fresh);
  pace_.episodes = x.episodes_total;
  pace_.ended = x.episodes_done;
  pace_.live = x.episodes_live;
  pace_.at_once = std::max<uint64_t>(pace_.at_once, x.episodes_live);
  pace_.turns = x.turns;
  pace_.ended_turns = x.turns_ended;
  last_ = x;
}

std::vector<std::string> progress_display::parts(const progress& x) const {
  std::vector<std::string> result;
  if (x.ending)
    result.emplace_back("ending: no new turns begin");
  else if (x.paused)
    result.emplace_back("paused: no new episodes start");
  auto said = static_cast<ptrdiff_t>(result.size());
  auto to_come = watch::forecast_of(pace_);
  auto planned = std::llround(static_cast<double>(x.turns) + to_come.turns);
  // What a run that ends still does is no part of its plan.
  result.push_back(x.ending ? fmt::format("{} turns", x.turns)
                            : fmt::format("{}/{} turns", x.turns, planned));
  result.push_back(ended_text(x));
  if (!x.paused && !x.ending && to_come.seconds && to_come.turns > 0)
    result.push_back("about " + cli::format_seconds(std::ceil(*to_come.seconds)) + " left");
  if (auto waiting = waiting_text(x); !waiting.empty()) result.push_back(waiting);
  if (x.in_slots > 0)
    result.push_back(x.in_slots == 1 ? "1 in a slot" : fmt::format("{} in slots", x.in_slots));
  if (x.tried_again > 0)
    result.insert(result.begin() + said + 2,
                  fmt::format("policy: {} tried again, attempt {}: {}", x.tried_again, x.attempts,
                              cli::shorten(cli::clean(x.last_error), longest_error)));
  return result;
}

void progress_display::update(const progress& x) {
  std::lock_guard lock{mutex_};
  note_pace(x);
  if (!begun_) {
    begun_ = true;
    if (!terminal_) last_shown_ = x.seconds; // the first plain line after the first interval
  }
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
